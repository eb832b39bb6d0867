// SPDX-License-Identifier: MIT
#pragma once
// weft::Scope: where children are joined and cancelled. Every Task's frame is one; a Nursery is one
// with a word of its own.
//
//     auto& scope = co_await current_scope();
//     auto child = work().start(scope);
//
// Threads        the scope's home loop only; a call from elsewhere that would change it is refused
//                with UsageError, and the queries are not for elsewhere. Other threads hold a
//                StartedTask, a PromiseChildLease or a CancelHandle.
// Cancellation   is_cancelled() is O(1) and sees what any thread asked for. cancel() never runs
//                user code on its caller's stack: waits are told by the home loop, ahead of every
//                task, and hooks too, unless the task itself reaches a cancel point first.
// Allocation     none: children and nodes are linked through their own memory.
//
// A frame's scope joins its children when its coroutine ends, and its locals are gone by then:
// children take their arguments by value. A Nursery joins while the locals of its caller live.
//
// Invariants
//   S1  the scope ends after every child has ended and its frame is destroyed, and after every
//       lease (L7).
//   S2  a member leaves the topology the moment it ends, fires or is disarmed (L8).
#include <cstdint>
#include <exception>

#include "weft/core/cancel_reason.h"
#include "weft/core/lease_count.h"
#include "weft/core/topology.h"

namespace weft::inline v0 {

class CancelNode;
class PromiseChildLease;
class StopToken;
struct CancellationRuntime;
namespace detail {
template <class Fn>
class BlockingAwaiter;
}

class Scope {
 public:
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  [[nodiscard]] bool is_cancelled() const noexcept;
  // Cancelled, and no ignore_cancellation() guard is in force.
  [[nodiscard]] bool is_effectively_cancelled() const noexcept;
  // Poll-only; valid while the scope is.
  [[nodiscard]] StopToken stop_token() const noexcept;

  // Cancels the scope: for a frame's scope, the whole task that it belongs to.
  void cancel(const CancelReason& reason = reasons::requested);

  // A child-count that can travel: across plain code, to other threads. The scope does not end
  // before it is dropped, not even when it is cancelled. So hand it away: a task that keeps a lease
  // of its own scope in a local waits for itself, because leases are waited for before locals die
  // (L9).
  [[nodiscard]] PromiseChildLease lease();

  // Adds a node that hears of cancellation. Into a cancelled scope: fires at once. While
  // cancellation is ignored: not before the guard is left. Returns: false, and nothing happens, if
  // the node was published before.
  bool publish_cancel_node(CancelNode& node);

 protected:
  Scope() = default;
  ~Scope() = default;

 private:
  friend struct CancellationRuntime;
  friend class detail::Frame;
  friend class detail::Adapter;

  // What the scope's strand does, kept in its innermost frame.
  enum class Phase : std::uint8_t {
    running,      // on the stack, or about to be
    parked,       // its awaiter was started; cancellable
    cancelling,   // its awaiter was asked to cancel and has not answered yet
    ready,        // in the ready ring
    unwind,       // cancelled: frames are to be destroyed, innermost first; in the ready ring
    joining,      // at its end, waiting for children or leases
    join_ready,   // the same, all gone, in the ready ring
    join_unwind,  // waiting for children or leases in the middle of unwinding
    join_unwind_ready,
    exit,  // ok() met an error: this frame ends here, its result is in place; in the ready ring
    join_exit,  // the same, waiting for children or leases
    join_exit_ready,
    moving,  // resume_on(): under way to its new home
    // From here on: what the loop has to do as soon as the stack is left.
    done,        // at its end, everything joined
    unwind_now,  // cancelled: as unwind, without the ready ring
    exit_now,    // as exit, without the ready ring
    move_now,    // resume_on(): the strand is to be sent to another loop
  };

  static constexpr std::uint8_t kIsNursery = 1;
  static constexpr std::uint8_t kFailed = 2;     // an exception left the coroutine
  static constexpr std::uint8_t kHasValue = 4;   // co_return built a value in front of the strand
  static constexpr std::uint8_t kHasErrors = 8;  // children failed: the executor keeps their errors
  static constexpr std::uint8_t kErrorsLost = 16;  // ... and there was no memory to keep one
  static constexpr std::uint8_t kOwnsIgnore =
      32;  // the outermost frame of its strand that ignores cancellation
  static constexpr std::uint8_t kHadMembers = 64;   // a child, a node or a lease was here, once
  static constexpr std::uint8_t kThrownInto = 128;  // an error with others was thrown into it, once

  // Plain in all but name: the home loop alone writes it. Holders of leases read it elsewhere, for
  // kIsNursery, which stands before there is a lease and never changes; hence relaxed.
  class Flags {
   public:
    operator std::uint8_t() const noexcept { return bits_.load(detail::relaxed); }
    void operator|=(std::uint8_t bits) noexcept { set(static_cast<std::uint8_t>(*this | bits)); }
    void operator&=(std::uint8_t bits) noexcept { set(static_cast<std::uint8_t>(*this & bits)); }

   private:
    void set(std::uint8_t bits) noexcept { bits_.store(bits, detail::relaxed); }
    detail::Atomic<std::uint8_t> bits_{0};
  };

  detail::Topology topology_;
  detail::LeaseCount leases_;
  Phase phase_ = Phase::running;
  Flags flags_;
  std::uint16_t ignore_depth_ = 0;
};

// Polls a scope for cancellation from code that cannot co_await. Valid while the scope is; that of
// blocking(), while its function runs. Any thread.
class StopToken {
 public:
  [[nodiscard]] bool stop_requested() const noexcept { return state_->is_effectively_cancelled(); }

 private:
  friend class Scope;
  template <class Fn>
  friend class detail::BlockingAwaiter;
  explicit StopToken(const CancellationState& state) noexcept : state_(&state) {}
  const CancellationState* state_;
};

}  // namespace weft::inline v0
