// SPDX-License-Identifier: MIT
#pragma once
// weft::CancellationRuntime: what happens to strands. The functions behind Scope, StartedTask,
// Nursery and the loop.
//
// docs/design/cancellation.md tells the whole story; each function here is one arrow of it.
#include <cstddef>
#include <exception>

#include "weft/core/adapter.h"
#include "weft/core/executor.h"
#include "weft/core/frame.h"
#include "weft/core/scope.h"
#include "weft/core/thread_state.h"

namespace weft::inline v0 {

class Nursery;

namespace detail {

// Whoever waits for a strand to end. `done` runs on the waiter's home loop.
struct JoinWaiter : Runnable {
  explicit JoinWaiter(void (*on_done)(Runnable&) noexcept) noexcept : Runnable(on_done) {}
  HomeIndex home = 0;         // 0: none of its own, it is told where the strand ends
  bool takes_strand = false;  // the strand's own reference passes to the waiter
  bool is_awaiter = false;    // a JoinAwaiterBase
  // The strand's parent lives where the waiter does. If the strand ends elsewhere, only the waiter
  // is posted, with `elsewhere` set, and it calls child_ended_elsewhere() when it has looked.
  bool tells_parent = false;
  bool elsewhere = false;
};

// What resume_on() leaves in the strand for the loop that sends it: where to. The adapter's
// questions are for parked strands, and this one is not.
class MoveOrder : public Adapter {
 public:
  [[nodiscard]] HomeIndex target() const noexcept { return target_; }

 protected:
  explicit MoveOrder(HomeIndex target) noexcept : target_(target) {}
  ~MoveOrder() = default;

 private:
  Answer cancel() noexcept override { return Answer::later; }
  bool must_resume() noexcept override { return true; }
  void introspect(TaskTreeCollector&) noexcept override {}

  HomeIndex target_;
};

}  // namespace detail

struct CancellationRuntime {
  using Word = CancellationState::Word;
  using Phase = Scope::Phase;

  // --- Any thread -------------------------------------------------------------------------------

  // Requires: the caller holds a reference to the strand, or is the home of the scope that lists
  // it.
  static void cancel(detail::Strand& strand, const CancelReason& reason) noexcept;
  static void drop_ref(detail::Strand& strand) noexcept;
  static void add_lease(Scope& scope) noexcept { scope.leases_.add(); }
  static void drop_lease(Scope& scope) noexcept;

  // --- Starting: on the strand's home-to-be, or before anyone can reach it ----------------------

  struct Start {
    detail::JoinWaiter* waiter = nullptr;
    bool with_handle = false;
    const CancelReason* cancelled = nullptr;  // born cancelled
  };
  // Turns a fresh task's frame into a strand of this loop. Its first entry comes from the ready
  // ring.
  static detail::Strand& start_here(detail::Frame& first, Scope* parent, const Start& how);
  // The same for a strand that tasks of many loops wait for: none of them is its parent, so it is a
  // guest even at home. Requires: the waiter has no home.
  static detail::Strand& start_guest(detail::Frame& first, detail::JoinWaiter& waiter) noexcept;
  // As start_here() with a handle, on the caller's stack up to the first suspension (the stated
  // exception to L2).
  static detail::Strand& start_now(detail::Frame& first, Scope& parent);
  // A child for a scope held by a lease, from any thread: consumes the lease's count.
  static detail::Strand& start_leased(detail::Frame& first, Scope& parent, bool with_handle);
  // The same with a handle, on this loop and at once; the scope's loop hears of it.
  static detail::Strand& start_leased_now(detail::Frame& first, Scope& parent);

  // --- Scheduling: tasks that any worker may start (run/) -----------------------------------------

  // Turns a task's frame into a strand without a home. `parent` is a scope of this loop, or null;
  // then any thread may do it, and the worker's root scope becomes its parent.
  static detail::Strand& make_fresh(detail::Frame& first, Scope* parent) noexcept;
  // The worker that took it out of its queue is its home from now on.
  static void begin_home(detail::Strand& fresh, Scope& root) noexcept;
  // Nobody will run it. Requires: it has no parent.
  static void discard_fresh(detail::Strand& fresh) noexcept;

  // --- Moving (src/core/moving.cc) --------------------------------------------------------------

  // As start_here(), on another loop; `parent` is a scope of this one, or null. Throws LoopStopped,
  // or UsageError where tasks cannot go, and then nothing was done; `what` is who asks.
  static detail::Strand& start_there(detail::Frame& first, Executor& target, Scope* parent,
                                     const Start& how, const char* what);
  // Has the loop send the frame's strand away when its stack is left. Throws as above, and
  // UsageError while a frame of the strand has children or leases.
  static void order_move(detail::Frame& frame, Executor& target, detail::MoveOrder& order);
  static void arrive(detail::Strand& strand) noexcept;
  static void arrive_with_errors(detail::PostNode& node) noexcept;

  // --- The home loop ----------------------------------------------------------------------------

  // Requires: no strand runs.
  static inline void enter(detail::Strand& strand);  // src/core/enter.h
  static void kick(detail::Strand& strand) noexcept;
  static void wake(detail::Strand& strand) noexcept;
  // As wake(), without a second turn in the ready ring. Requires: no strand runs.
  static void enter_parked(detail::Strand& strand) noexcept;
  // To the back of the ready ring, or, cancelled, to the end. Requires: the frame runs.
  static void yield(detail::Frame& frame, std::source_location at) noexcept;
  static void child_link_arrived(detail::ParentLink& link) noexcept;
  static void child_ended_elsewhere(detail::Strand& child) noexcept;

  // Returns: true if the coroutine must stay at its end until children and leases are gone.
  static bool wait_at_end(detail::Frame& frame) noexcept;
  static void cancel_children(Scope& scope, const CancelReason& reason) noexcept;
  static void fire_nodes(Scope& scope) noexcept;
  static void cleanup_nodes(Scope& scope) noexcept;
  // Returns: false if cancellation came first.
  [[nodiscard]] static bool enter_ignore(detail::Frame& frame) noexcept;
  static void leave_ignore(detail::Frame& frame) noexcept;
  static bool publish(Scope& scope, CancelNode& node);
  static void withdraw(CancelNode& node) noexcept;

  static detail::Strand& strand_of(const Scope& scope) noexcept;
  static detail::HomeIndex home_of(const Scope& scope) noexcept;
  static bool is_being_destroyed(const Scope& scope) noexcept;
  // UsageError unless this thread drives the scope's home loop, and the scope can have members.
  static void require_home(const Scope& scope, const char* what);
  static void add_error(Scope& scope, const detail::CaughtError& error) noexcept;
  // An error is leaving the frame. The others that belong to it stay with the frame until it ends.
  static void keep_others(detail::Frame& frame, const detail::CaughtError& error) noexcept;
  // Returns: `first`, if any, and the errors kept in the scope. Whoever does not throw it remembers
  // it.
  static detail::CaughtError take_errors(Scope& scope, const std::exception_ptr& first) noexcept;
  static bool has_errors(const Scope& scope) noexcept;

  // How an Adapter says what became of its frame.
  static void set_parked(detail::Frame& frame, detail::Strand& strand, detail::Adapter& adapter,
                         bool cancelling, bool leaf) noexcept {
    frame.phase_ = cancelling ? Phase::cancelling : Phase::parked;
    strand.wait = reinterpret_cast<std::uintptr_t>(&adapter) | (leaf ? detail::Strand::kLeaf : 0);
  }
  static void set_running(detail::Frame& frame) noexcept { frame.phase_ = Phase::running; }
  static void set_unwinding(detail::Frame& frame) noexcept { frame.phase_ = Phase::unwind_now; }

  // ok() met an error, and the frame's result says so: at once, or when its wait is woken.
  static void set_exiting(detail::Frame& frame) noexcept { frame.phase_ = Phase::exit_now; }
  static void exit_when_ready(detail::Frame& frame) noexcept;

  // For the task tree.
  static const char* phase_name(const Scope& scope) noexcept;
  static detail::Adapter* parked_on(detail::Strand& strand) noexcept;
  static const detail::Topology& topology(const Scope& scope) noexcept { return scope.topology_; }
  // The strand whose co_await opened the nursery, if it is one's own.
  static detail::Strand* waiter_of_nursery(const Scope& nursery) noexcept;
  // For detail::needing(). Any thread that drives the home of one of its children.
  static bool is_nursery(const Scope& scope) noexcept { return scope.flags_ & Scope::kIsNursery; }
  static detail::Strand* needing_nursery(const Scope& nursery) noexcept;
  // Its strand waits for its children, on this loop.
  static bool joins(const detail::Frame& frame) noexcept;

  static void mark_nursery(Scope& scope) noexcept;
  // Makes a child of one nursery a child of another of the same loop.
  static void move_child(detail::Strand& child, Scope& to) noexcept;
  // A lease taken and dropped on the home loop.
  static void drop_lease_at_home(Scope& scope) noexcept;
  // The nursery's last child or lease is gone, and no kick is under way.
  static bool try_close_nursery(Scope& scope) noexcept;

 private:
  static detail::Strand& begin(detail::Frame& first, Word word, detail::HomeIndex home,
                               const Start& how) noexcept;
  static detail::Strand& begin_here(detail::Frame& first, Scope* parent, const Start& how);
  static const CancelReason* doom_of(const Scope& scope) noexcept;
  static void adopt(detail::Strand& child, Scope& parent) noexcept;
  static void list_child(detail::Strand& child, Scope& parent) noexcept;
  static void send_link(detail::Strand& child, Scope& parent,
                        detail::ParentLink* on_arrival) noexcept;
  static void send_kick(detail::Strand& strand) noexcept;
  static void cancel_child(detail::Strand& child, const CancelReason& reason,
                           Executor& here) noexcept;
  static bool is_parked_leaf(const detail::Strand& strand) noexcept;
  static void push_ready(detail::Strand& strand, Executor& here) noexcept;
  // Tells hooks and children of the frames from `frame` outwards.
  static void tell_frames(detail::Strand& strand, detail::Frame* frame) noexcept;
  // The outermost frame that a kick tells: those inside an ignore guard are spared.
  static detail::Frame* outside_guard(detail::Strand& strand, Word word) noexcept;
  static void announce(Executor& target, const char* what);
  static void depart(detail::Strand& strand) noexcept;
  static void list_if_guest(detail::Strand& strand, Executor& here) noexcept;
  static inline void resume(detail::Strand& strand, detail::Frame& top);
  static void enter_at_once(detail::Strand& strand);
  static void enter_unusual(detail::Strand& strand);
  static void leave(detail::Strand& strand);
  static void wake_cancelling(detail::Strand& strand) noexcept;
  static void joined(detail::Strand& strand);
  static void exit_frame(detail::Strand& strand);
  static void unwind(detail::Strand& strand) noexcept;
  static void finish(detail::Strand& strand, detail::OutcomeKind kind) noexcept;
  static void pass_errors_on(detail::Frame& frame) noexcept;
  static void end(detail::Strand& strand) noexcept;
  static void end_shared(detail::Strand& strand, Executor& here) noexcept;
  static void release_child(detail::Strand& child, Executor& here) noexcept;
  static void child_failed(Scope& scope, detail::Ended& ended) noexcept;
  static void cancel_siblings(Scope& scope) noexcept;
  static void scope_progress(Scope& scope, Executor& here) noexcept;
  static void free_strand(detail::Strand& strand) noexcept;
};

// What the runtime needs of its neighbours.
namespace detail {
[[nodiscard]] LocalValue* share_locals(LocalValue* locals) noexcept;
void release_locals(LocalValue* locals) noexcept;
[[noreturn]] void throw_off_home(const char* what);
}  // namespace detail

}  // namespace weft::inline v0
