// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Strand: the unit of cancellation, and the control block of a task that was started.
//
// A strand is a started task together with every Task that it awaits in line. It owns the word that
// cancellers set, the node by which they tell its home loop, and the place where its end and its
// waiter meet. It lies in front of the first frame, in one block with it, and outlives that frame:
//
//     [ value, if any | Strand | coroutine frame … ]
//
// A Task that is awaited in line never becomes a strand: its strand bytes stay unused (and an
// elided frame has none).
//
// Which thread may touch what:
//   any thread with a reference   state, reason, home (read), waiter; kick: the one who owes it;
//     or a lease                  link: the one who drops the last lease of a scope that waits
//   parent's home loop            parent_link, between the child's link and its unlink; but for
//                                 `scope`, which both homes read and nobody writes meanwhile
//   home loop                     everything else; between a store of `home` and the arrival there,
//                                 the new one, and it may only look
//
// Invariants
//   T1  top is the innermost frame; following parent() leads to the first frame.
//   T2  wait is valid exactly while top's phase is parked, cancelling or move_now; otherwise those
//       bytes are `link`.
//   T3  link is in at most one chain at a time (L6: exactly one resume).
//   T4  after the end, `Ended` lies where the frame lay.
//   T5  where is the co_await that the innermost frame began last; when the first frame has failed,
//       and so awaits no more, its error lies there.
//   T6  home changes on the home loop only, by resume_on(), and that loop touches the strand no
//       more then, but for the post that carries it.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <source_location>

#include "weft/core/cancel_reason.h"
#include "weft/core/cancellation_state.h"
#include "weft/core/caught_error.h"
#include "weft/core/fresh_node.h"
#include "weft/core/inbox.h"
#include "weft/core/waiter_slot.h"

namespace weft::inline v0 {
class Scope;
}

namespace weft::inline v0::detail {

class Adapter;
class Frame;
struct JoinWaiter;
struct Strand;

using HomeIndex = std::uint32_t;  // a LoopPort's place in the process-wide slab; 0: none

// A member of a scope's topology: a child strand, or a CancelNode. Owned by the scope's home loop.
struct ParentLink {
  static constexpr std::uintptr_t kIsNode = 1;  // tag on `scope`: a CancelNode, not a child

  ParentLink* prev = nullptr;
  union {
    ParentLink* next = nullptr;
    PostNode arrival;  // while the link is under way to the scope's home
  };
  std::uintptr_t scope = 0;

  [[nodiscard]] bool is_child() const noexcept { return !(scope & kIsNode); }
  [[nodiscard]] Scope* parent() const noexcept {
    return reinterpret_cast<Scope*>(scope & ~kIsNode);
  }
  static ParentLink& from_arrival(PostNode& node) noexcept {
    auto* at = reinterpret_cast<std::byte*>(&node) - std::ptrdiff_t{offsetof(ParentLink, arrival)};
    return *std::launder(reinterpret_cast<ParentLink*>(at));
  }
};

enum class OutcomeKind : std::uint8_t { none, value, error, cancelled };

// What is left of a task when its frame is gone.
struct Ended {
  CaughtError error;
  void (*free_block)(Strand&, std::size_t frame_bytes, std::uint32_t align,
                     bool with_value) noexcept;
  std::size_t frame_bytes;
  std::uint32_t align;
  OutcomeKind kind;
  bool has_value;
  bool to_handle;  // a StartedTask existed when the task ended: an error is owed to it, else to the
                   // scope
  bool read;       // someone was given the outcome
};

struct alignas(16) Strand {
  CancellationState state;
  Atomic<HomeIndex> home;
  PostNode kick;  // after the kick was seen: when, in nanoseconds of the loop's clock
  Atomic<const CancelReason*> reason;
  union {
    std::uintptr_t wait;  // an Adapter, and kLeaf
    PostNode link;
    FreshNode fresh;  // until it has a home
  };
  Frame* top;
  WaiterSlot<JoinWaiter> waiter;
  union {
    std::source_location where;
    std::exception_ptr error;  // T5
  };
  ParentLink parent_link;

  // On `wait`: cancelling this wait ends it at once and runs nobody's code (CancelsAtOnce).
  static constexpr std::uintptr_t kLeaf = 1;

  // Requires: nobody can reach it yet; `word` says whether it has its home.
  Strand(CancellationState::Word word, HomeIndex at_home, Frame* first) noexcept
      : state(word), home(at_home), reason(nullptr), wait(0), top(first), where() {}
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;
  ~Strand() {}

  // T2.
  [[nodiscard]] Adapter& waits_on() const noexcept {
    return *reinterpret_cast<Adapter*>(wait & ~kLeaf);
  }
  // The first frame's promise, which lies at a fixed distance.
  [[nodiscard]] inline Frame& first_frame() noexcept;
  // A Nursery's strand has no frames; parent_link names the nursery itself.
  [[nodiscard]] bool is_nursery() const noexcept { return top == nullptr; }
  [[nodiscard]] Ended& ended() noexcept {
    return *std::launder(reinterpret_cast<Ended*>(this + 1));
  }

  [[nodiscard]] bool is_effectively_cancelled() const noexcept {
    return state.is_effectively_cancelled();
  }
  [[nodiscard]] const CancelReason& why() const noexcept {
    const CancelReason* given = reason.load(acquire);
    return given ? *given : reasons::requested;
  }

  static Strand& from_kick(PostNode& node) noexcept { return at(&node, offsetof(Strand, kick)); }
  static Strand& from_link(PostNode& node) noexcept { return at(&node, offsetof(Strand, link)); }
  static Strand& from_fresh(FreshNode& node) noexcept { return at(&node, offsetof(Strand, fresh)); }
  static Strand& from_parent_link(ParentLink& node) noexcept {
    return at(&node, offsetof(Strand, parent_link));
  }

 private:
  static Strand& at(void* member, std::ptrdiff_t offset) noexcept {
    return *std::launder(reinterpret_cast<Strand*>(static_cast<std::byte*>(member) - offset));
  }
};

static_assert(sizeof(Strand) == 80,
              "a parked task must stay within its budget of bytes (bench: parked_bytes)");
static_assert(sizeof(std::exception_ptr) == sizeof(void*));

}  // namespace weft::inline v0::detail
