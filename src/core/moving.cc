// SPDX-License-Identifier: MIT
#include "weft/core/moving.h"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "error_book.h"
#include "guest_book.h"
#include "this_thread.h"
#include "weft/base/assert.h"
#include "weft/core/cancel_node.h"
#include "weft/core/errors.h"

namespace weft::inline v0 {

using detail::Frame;
using detail::HomeIndex;
using detail::JoinWaiter;
using detail::ParentLink;
using detail::PostEntry;
using detail::PostKind;
using detail::Strand;

namespace detail {

// Errors lie in a book per loop. Those of a strand that moves travel with it, in one block.
struct MovedErrors : PostNode {
  explicit MovedErrors(Strand& of) noexcept : PostNode{0}, strand(&of) {}
  Strand* strand;
  ErrorBook book;
};

}  // namespace detail

namespace {

void require_posts(const Executor& loop, const char* what, const char* which) {
  if (loop.takes_posts()) return;
  throw UsageError(std::string(what) + ": the event loop " + which +
                   " cannot be sent anything by another one: that needs EventLoopTraits::post");
}

// Nodes of a scope without children.
template <class Fn>
void for_each_node(const detail::Topology& topology, Fn&& fn) {
  ParentLink* node = topology.first();
  if (!node) return;
  do {
    fn(*node);
    node = node->next;
  } while (node != topology.first());
}

}  // namespace

// --- Here ---------------------------------------------------------------------------------------

void CancellationRuntime::announce(Executor& target, const char* what) {
  require_posts(Executor::current(what), what, "here");
  require_posts(target, what, "there");
  detail::LoopPort& port = target.port();
  bool together = port.group && port.group == Executor::current_or_null()->port().group;
  if (together ? port.arrivals.announce_within_group() : port.arrivals.announce()) return;
  throw LoopStopped(std::string(what) + ": this event loop takes no more tasks: it was stopped, " +
                    "or its run() has returned");
}

Strand& CancellationRuntime::start_there(Frame& first, Executor& target, Scope* parent,
                                         const Start& how, const char* what) {
  if (target.is_current()) return start_here(first, parent, how);
  announce(target, what);
  Start start = how;
  if (parent) start.cancelled = doom_of(*parent);
  // SHARED (W7): its parent, or its waiter, cancels it from here.
  Strand& strand =
      begin(first, CancellationState::HOMED | CancellationState::SHARED, target.home(), start);
  if (parent) adopt(strand, *parent);
  bool posted = target.port().post(PostEntry(strand.link, PostKind::moved));
  WEFT_ASSERT(posted, "A3: a strand that was announced finds its loop open");
  return strand;
}

void CancellationRuntime::order_move(Frame& frame, Executor& target, detail::MoveOrder& order) {
  Strand& strand = frame.strand();
  for (Frame* each = &frame; each; each = each->parent()) {
    if (!each->topology_.has_children() && each->leases_.settled()) continue;
    detail::throw_usage_error(
        "resume_on(): a task moves alone: this one, or one that awaits it in line, has children or "
        "leases, which belong to this loop. Join them first, or use on(loop, task)");
  }
#ifdef WEFT_AWAITABLE_STATE_DEBUG
  detail::require_no_locks(strand, "resume_on()");
#endif
  announce(target, "resume_on()");
  strand.wait = reinterpret_cast<std::uintptr_t>(static_cast<detail::Adapter*>(&order));
  frame.phase_ = Phase::move_now;
}

void CancellationRuntime::depart(Strand& strand) noexcept {
  Executor& loop = *detail::this_thread().executor;
  HomeIndex target = static_cast<detail::MoveOrder&>(strand.waits_on()).target();
  strand.state.set_shared();  // W7: its parent and its waiter stay behind
  loop.guests_->remove(strand);
  --loop.strands_;

  std::unique_ptr<detail::MovedErrors> errors;
  for (Frame* frame = strand.top; frame; frame = frame->parent()) {
    for_each_node(frame->topology_, [&](ParentLink& link) {
      CancelNode::from_link(link).home_.store(target | CancelNode::kUnderWay, detail::seq_cst);
    });
    if (!(frame->flags_ & Scope::kHasErrors)) [[likely]]
      continue;
    detail::CaughtError kept = loop.errors_->take(*frame);
    try {
      if (!errors) errors = std::make_unique<detail::MovedErrors>(strand);
      errors->book.of(*frame) = std::move(kept);
    } catch (const std::bad_alloc&) {
      frame->flags_ &= static_cast<std::uint8_t>(~Scope::kHasErrors);
      frame->flags_ |= Scope::kErrorsLost;  // bad_alloc takes their place
    }
  }
  PostEntry entry = errors ? PostEntry(*errors.release(), PostKind::moved_with_errors)
                           : PostEntry(strand.link, PostKind::moved);
  strand.top->phase_ = Phase::moving;
  // release: the strand as it is now, to a kick that comes there before it. But for the post, this
  // thread touches it no more. [pairs with kick()]
  strand.home.store(target, detail::release);
  bool posted = detail::port_at(target).post(entry);
  WEFT_ASSERT(posted, "A3: a strand that was announced finds its loop open");
}

// --- There --------------------------------------------------------------------------------------

void CancellationRuntime::list_if_guest(Strand& strand, Executor& loop) noexcept {
  HomeIndex belongs = loop.home();
  if (Scope* parent = strand.parent_link.parent()) {
    belongs = home_of(*parent);
  } else if (JoinWaiter* waiter = strand.waiter.peek()) {
    belongs = waiter->home;
  }
  if (belongs == loop.home()) return;
  // Of a loop that is stopped together with this one: its own tree tells it.
  const void* group = loop.port().group;
  if (group && detail::port_at(belongs).group == group) return;
  try {
    loop.guests_->add(strand);
  } catch (const std::bad_alloc&) {
    cancel(strand, reasons::loop_full);  // a loop must be able to end
  }
}

void CancellationRuntime::arrive(Strand& strand) noexcept {
  Executor& loop = *detail::this_thread().executor;
  ++loop.strands_;
  loop.port().arrivals.arrived();
  list_if_guest(strand, loop);
  // Before anything is made ready: resume_on() is a cancel point after the move, too.
  if (loop.port().arrivals.refuses()) {
    cancel(strand, loop.port().group ? reasons::context_stopped : reasons::loop_stopped);
  }
  Frame& top = *strand.top;
  if (top.phase_ == Phase::moving) {
    top.phase_ = Phase::ready;
    for (Frame* frame = &top; frame; frame = frame->parent()) {
      for_each_node(frame->topology_, [&](ParentLink& link) {
        CancelNode::from_link(link).home_.store(loop.home(), detail::seq_cst);
      });
    }
    // What a kick that overtook it left to do. If none did, one is under way, and finds it done.
    Word word = strand.state.load();
    if (word & CancellationState::CANCELLED) {
      tell_frames(strand, outside_guard(strand, word));
      if (!(word & CancellationState::IGNORED)) top.phase_ = Phase::unwind;
    }
  }
  push_ready(strand, loop);
}

void CancellationRuntime::arrive_with_errors(detail::PostNode& node) noexcept {
  std::unique_ptr<detail::MovedErrors> moved(static_cast<detail::MovedErrors*>(&node));
  Executor& loop = *detail::this_thread().executor;
  for (Frame* frame = moved->strand->top; frame; frame = frame->parent()) {
    if (!(frame->flags_ & Scope::kHasErrors)) continue;
    try {
      if (!loop.errors_) loop.errors_ = std::make_unique<detail::ErrorBook>();
      loop.errors_->of(*frame) = moved->book.take(*frame);
    } catch (const std::bad_alloc&) {
      frame->flags_ &= static_cast<std::uint8_t>(~Scope::kHasErrors);
      frame->flags_ |= Scope::kErrorsLost;
    }
  }
  arrive(*moved->strand);
}

}  // namespace weft::inline v0
