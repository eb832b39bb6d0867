// SPDX-License-Identifier: MIT
// A strand's life on its home loop, in one file although it is long: starting, entering, leaving,
// ending and cancelling are one state machine over Scope::Phase, and each step is read against the
// others. What moves between loops is in moving.cc, the hot entry in enter.h.
#include "weft/core/cancellation_runtime.h"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "enter.h"
#include "error_book.h"
#include "guest_book.h"
#include "weft/base/log.h"
#include "weft/core/adapter.h"
#include "weft/core/cancel_node.h"
#include "weft/core/nursery.h"

namespace weft::inline v0 {

using detail::Adapter;
using detail::Ended;
using detail::Frame;
using detail::HomeIndex;
using detail::JoinWaiter;
using detail::OutcomeKind;
using detail::ParentLink;
using detail::PostEntry;
using detail::PostKind;
using detail::Strand;

namespace {

Executor& here() noexcept {
  Executor* executor = detail::this_thread().executor;
  WEFT_ASSERT(executor, "L1: a strand is touched only on its home loop");
  return *executor;
}

Nursery& as_nursery(Scope& scope) noexcept { return static_cast<Nursery&>(scope); }

}  // namespace

// --- Any thread ---------------------------------------------------------------------------------

void CancellationRuntime::cancel(Strand& strand, const CancelReason& reason) noexcept {
  const CancelReason* none = nullptr;
  // relaxed on success: request_cancel() releases it.
  strand.reason.compare_exchange_strong(none, &reason, detail::relaxed, detail::relaxed);
  if (strand.state.request_cancel()) send_kick(strand);
}

void CancellationRuntime::send_kick(Strand& strand) noexcept {
  // The strand cannot go away: it closes as a husk and waits for this kick (W4).
  for (;;) {
    HomeIndex home = strand.home.load(detail::relaxed);  // only where to; kick() looks again
    PostEntry entry(strand.kick, PostKind::kick);
    if (Executor* executor = detail::this_thread().executor; executor && executor->home() == home) {
      executor->kicks_.push(entry);
      if (executor->tells_) [[unlikely]]
        executor->told_of_work();
      return;
    }
    // A closed port: the strand has moved on, and home says where to.
    if (detail::port_at(home).post(entry)) return;
  }
}

void CancellationRuntime::drop_ref(Strand& strand) noexcept {
  if (strand.state.drop_ref()) free_strand(strand);
}

void CancellationRuntime::free_strand(Strand& strand) noexcept {
  Ended& ended = strand.ended();
  if (ended.kind == OutcomeKind::error && !ended.read) {
    detail::report_unread_error(ended.error);  // L14
  }
  auto free_block = ended.free_block;
  std::size_t bytes = ended.frame_bytes;
  std::uint32_t align = ended.align;
  bool with_value = ended.has_value;
  ended.~Ended();
  free_block(strand, bytes, align, with_value);
}

void CancellationRuntime::drop_lease(Scope& scope) noexcept {
  if (!scope.leases_.drop()) return;
  // C3: the scope waits for this post, so it may still be read.
  Strand& strand = strand_of(scope);
  bool posted = detail::port_at(strand.home.load(detail::acquire))
                    .post(PostEntry(strand.link, PostKind::ready));
  WEFT_ASSERT(posted, "a loop does not end while a scope of its waits for a lease");
}

// --- Starting -----------------------------------------------------------------------------------

Strand& CancellationRuntime::begin(Frame& first, Word word, HomeIndex home,
                                   const Start& how) noexcept {
  WEFT_ASSERT(!first.is_started(), "a Task is started or awaited once");
  word |= how.with_handle ? (CancellationState::HANDLE | 2) : 1;
  if (how.cancelled) word |= CancellationState::CANCELLED | CancellationState::KICKED;
  auto* strand = new (first.strand_bytes()) Strand(word, home, &first);
  strand->kick.next = 0;
  if (how.cancelled) strand->reason.store(how.cancelled, detail::relaxed);
  if (how.waiter) strand->waiter.reset(how.waiter);
  detail::LocalValue* locals = nullptr;
  if (Strand* starter = detail::this_thread().running) locals = starter->first_frame().locals();
  first.attach_first(locals ? detail::share_locals(locals) : nullptr);
  first.phase_ = Phase::ready;
  return *strand;
}

void CancellationRuntime::adopt(Strand& child, Scope& parent) noexcept {
  child.parent_link.scope = reinterpret_cast<std::uintptr_t>(&parent);
  list_child(child, parent);
}

void CancellationRuntime::list_child(Strand& child, Scope& parent) noexcept {
  parent.topology_.add_child(child.parent_link);
  if (parent.flags_ & Scope::kIsNursery) {
    ++as_nursery(parent).size_;
  } else {
    parent.flags_ |= Scope::kHadMembers;
  }
}

Strand& CancellationRuntime::begin_here(Frame& first, Scope* parent, const Start& how) {
  Executor& loop = here();
  Start start = how;
  if (parent) start.cancelled = doom_of(*parent);
  Strand& strand = begin(first, CancellationState::HOMED, loop.home(), start);
  ++loop.strands_;
  if (parent) adopt(strand, *parent);
  return strand;
}

Strand& CancellationRuntime::start_here(Frame& first, Scope* parent, const Start& how) {
  Strand& strand = begin_here(first, parent, how);
  push_ready(strand, here());
  return strand;
}

Strand& CancellationRuntime::start_guest(Frame& first, JoinWaiter& waiter) noexcept {
  Executor& loop = here();
  // SHARED (W7): it is cancelled by whichever of those who wait is the last.
  Strand& strand = begin(first, CancellationState::HOMED | CancellationState::SHARED, loop.home(),
                         {.waiter = &waiter});
  ++loop.strands_;
  list_if_guest(strand, loop);
  push_ready(strand, loop);
  return strand;
}

Strand& CancellationRuntime::make_fresh(Frame& first, Scope* parent) noexcept {
  Start how;
  if (parent) how.cancelled = doom_of(*parent);
  // SHARED (W7): a parent may cancel it while another worker is its home, or makes itself so.
  Strand& strand = begin(first, CancellationState::SHARED, 0, how);
  new (&strand.fresh) detail::FreshNode{};
  if (parent) adopt(strand, *parent);
  return strand;
}

void CancellationRuntime::begin_home(Strand& fresh, Scope& root) noexcept {
  Executor& loop = here();
  fresh.wait = 0;
  fresh.home.store(loop.home(), detail::relaxed);
  ++loop.strands_;
  Scope* parent = fresh.parent_link.parent();
  if (!parent) {
    fresh.state.set_homed_private();
    adopt(fresh, root);
    if (const CancelReason* doom = doom_of(root)) [[unlikely]]
      cancel(fresh, *doom);
  } else if (home_of(*parent) == loop.home()) {
    fresh.state.set_homed_private();
  } else {
    fresh.state.set_homed();
    list_if_guest(fresh, loop);
  }
  push_ready(fresh, loop);
}

void CancellationRuntime::discard_fresh(Strand& fresh) noexcept {
  Frame& frame = fresh.first_frame();
  detail::LocalValue* locals = frame.locals();
  frame.phase_ = Phase::done;
  frame.handle().destroy();
  if (locals) detail::release_locals(locals);
  fresh.ended().kind = OutcomeKind::cancelled;
  drop_ref(fresh);
}

Strand& CancellationRuntime::start_now(Frame& first, Scope& parent) {
  Strand& strand = begin_here(first, &parent, {.with_handle = true});
  enter_at_once(strand);
  return strand;
}

namespace {
// While a link is under way its `prev` says what the arrival has to do.
ParentLink* const kStartOnArrival = reinterpret_cast<ParentLink*>(std::uintptr_t{8});
}  // namespace

void CancellationRuntime::send_link(Strand& child, Scope& parent, ParentLink* on_arrival) noexcept {
  child.parent_link.scope = reinterpret_cast<std::uintptr_t>(&parent);
  child.parent_link.prev = on_arrival;
  bool posted =
      detail::port_at(home_of(parent)).post(PostEntry(child.parent_link.arrival, PostKind::link));
  WEFT_ASSERT(posted, "a loop does not end while a scope of its has a lease");
}

Strand& CancellationRuntime::start_leased(Frame& first, Scope& parent, bool with_handle) {
  Strand& strand = begin(first, CancellationState::HOMED | CancellationState::SHARED,
                         home_of(parent), {.with_handle = with_handle});
  send_link(strand, parent, kStartOnArrival);
  return strand;
}

Strand& CancellationRuntime::start_leased_now(Frame& first, Scope& parent) {
  Executor& loop = here();
  HomeIndex home = home_of(parent);
  if (home == loop.home()) {
    Strand& strand = begin_here(first, &parent, {.with_handle = true});
    parent.leases_.drop_at_home();
    enter_at_once(strand);
    return strand;
  }
  // A loop that was stopped has told its guests already.
  const CancelReason* doom = loop.port().arrivals.refuses() ? &reasons::loop_stopped : nullptr;
  Strand& strand = begin(first, CancellationState::HOMED | CancellationState::SHARED, loop.home(),
                         {.with_handle = true, .cancelled = doom});
  ++loop.strands_;
  send_link(strand, parent, nullptr);
  list_if_guest(strand, loop);
  enter_at_once(strand);
  return strand;
}

void CancellationRuntime::child_link_arrived(ParentLink& link) noexcept {
  Strand& child = Strand::from_parent_link(link);
  Scope& parent = *link.parent();
  bool start = link.prev == kStartOnArrival;
  list_child(child,
             parent);  // link.scope stays as it was sent: a child that lives elsewhere reads it
  parent.leases_.drop_at_home();  // the lease has become a listed child
  if (start) {
    Executor& loop = here();
    ++loop.strands_;
    push_ready(child, loop);
  }
  if (const CancelReason* doom = doom_of(parent)) cancel(child, *doom);
}

// Returns: why a child that joins the scope now is cancelled from the start, or null.
const CancelReason* CancellationRuntime::doom_of(const Scope& scope) noexcept {
  Strand& strand = strand_of(scope);
  if (strand.is_effectively_cancelled()) return &strand.why();
  // L9: an exception or an ok() error has left the frame, and its children are being cancelled.
  bool leaving = scope.phase_ == Phase::join_exit || scope.phase_ == Phase::join_exit_ready ||
                 (scope.flags_ & Scope::kFailed);
  return leaving ? &reasons::parent_failed : nullptr;
}

// --- The home loop: entering and leaving --------------------------------------------------------

void CancellationRuntime::push_ready(Strand& strand, Executor& loop) noexcept {
  loop.ready_.push(PostEntry(strand.link, PostKind::ready));
  if (loop.tells_) [[unlikely]]
    loop.told_of_work();
}

void CancellationRuntime::wake(Strand& strand) noexcept {
  if (strand.top->phase_ != Phase::parked) [[unlikely]]
    return wake_cancelling(strand);
  strand.top->phase_ = Phase::ready;
  push_ready(strand, here());
}

void CancellationRuntime::enter_parked(Strand& strand) noexcept {
  Executor& loop = here();
  // A task that captures may be on the stack below.
  if (strand.top->phase_ != Phase::parked || loop.capturing_) [[unlikely]]
    return wake(strand);
  strand.top->phase_ = Phase::ready;
  enter(strand);
}

void CancellationRuntime::yield(Frame& frame, std::source_location at) noexcept {
  detail::ThreadState& thread = detail::this_thread();
  Strand& strand = *thread.running;
  strand.where = at;
  if (strand.is_effectively_cancelled()) [[unlikely]] {
    frame.phase_ = Phase::unwind_now;
    return;
  }
  frame.phase_ = Phase::ready;
  push_ready(strand, *thread.executor);
}

void CancellationRuntime::wake_cancelling(Strand& strand) noexcept {
  Frame& top = *strand.top;
  WEFT_ASSERT(top.phase_ == Phase::cancelling, "L6: a wait is resumed exactly once");
  top.phase_ = strand.waits_on().must_resume() ? Phase::ready : Phase::unwind;
  push_ready(strand, here());
}

// In the middle of another's step, or outside of all. The handle's reference keeps the strand.
void CancellationRuntime::enter_at_once(Strand& strand) {
  Strand* outer = detail::this_thread().running;
  enter(strand);
  detail::this_thread().running = outer;
}

// What the ready ring holds strands for, beside going on.
void CancellationRuntime::enter_unusual(Strand& strand) {
  if (strand.is_nursery()) {
    Nursery& nursery = as_nursery(*strand.parent_link.parent());
    detail::this_thread().running = nullptr;  // it has no frames, and so does not run
    nursery.leases_.post_arrived();
    nursery.progress();
    return;
  }
  switch (strand.top->phase_) {
    case Phase::unwind:
      unwind(strand);
      break;
    case Phase::joining:
    case Phase::join_ready:
      strand.top->leases_.post_arrived();
      joined(strand);
      break;
    case Phase::join_unwind:
    case Phase::join_unwind_ready:
      strand.top->leases_.post_arrived();
      unwind(strand);
      break;
    case Phase::exit:
      exit_frame(strand);
      break;
    case Phase::join_exit:
    case Phase::join_exit_ready:
      strand.top->leases_.post_arrived();
      exit_frame(strand);
      break;
    default:
      WEFT_ASSERT(false, "L6: a strand enters the ready ring once per wait");
  }
}

// The coroutine's stack was left for good.
void CancellationRuntime::leave(Strand& strand) {
  Frame& top = *strand.top;
  if (top.phase_ == Phase::done) {
    finish(strand, top.failed() ? OutcomeKind::error : OutcomeKind::value);
  } else if (top.phase_ == Phase::exit_now) {
    exit_frame(strand);
  } else if (top.phase_ == Phase::move_now) {
    depart(strand);
  } else {
    unwind(strand);
  }
}

bool CancellationRuntime::wait_at_end(Frame& frame) noexcept {
  if (frame.failed()) cancel_children(frame, reasons::parent_failed);  // L9
  if (frame.topology_.has_children() || frame.leases_.wait()) {
    frame.phase_ = Phase::joining;
    return true;
  }
  cleanup_nodes(frame);
  if (frame.flags_ & (Scope::kHasErrors | Scope::kErrorsLost)) frame.merge_errors();
  return false;
}

void CancellationRuntime::joined(Strand& strand) {
  Frame& frame = *strand.top;
  if (wait_at_end(frame)) return;  // a lease started one more child
  if (frame.is_first()) {
    finish(strand, frame.failed() ? OutcomeKind::error : OutcomeKind::value);
    return;
  }
  frame.phase_ = Phase::done;
  Frame& parent = *frame.parent();
  strand.top = &parent;
  resume(strand, parent);
}

void CancellationRuntime::exit_when_ready(Frame& frame) noexcept {
  frame.phase_ = Phase::exit;
  push_ready(frame.strand(), here());
}

// L9: cancel the children, join them, destroy the frame; then the caller goes on with the result.
void CancellationRuntime::exit_frame(Strand& strand) {
  Frame& frame = *strand.top;
  if (!frame.nothing_to_join()) {
    cancel_children(frame, reasons::parent_failed);
    if (frame.topology_.has_children() || frame.leases_.wait()) {
      frame.phase_ = Phase::join_exit;
      return;
    }
    cleanup_nodes(frame);
  }
  if (has_errors(frame)) frame.merge_errors();
  if (frame.is_first()) {
    finish(strand, frame.failed() ? OutcomeKind::error : OutcomeKind::value);
    return;
  }
  // The caller's awaiter destroys the frame before it hands out the result.
  frame.phase_ = Phase::done;
  Frame& parent = *frame.parent();
  strand.top = &parent;
  resume(strand, parent);
}

void CancellationRuntime::unwind(Strand& strand) noexcept {
  for (;;) {
    Frame& frame = *strand.top;
    if (!frame.nothing_to_join()) {
      fire_nodes(frame);
      cancel_children(frame, strand.why());
      if (frame.topology_.has_children() || frame.leases_.wait()) {
        frame.phase_ = Phase::join_unwind;
        return;
      }
    }
    if (has_errors(frame)) [[unlikely]]
      pass_errors_on(frame);
    if (frame.is_first()) {
      finish(strand, frame.failed() ? OutcomeKind::error : OutcomeKind::cancelled);
      return;
    }
    // Innermost first. No recursion, however deep (L10).
    detail::InlineSlot& slot = frame.inline_slot();
    WEFT_DEBUG_ASSERT(!frame.failed(), "a frame that has failed is not unwound");
    strand.top = slot.parent;
    frame.phase_ = Phase::done;
    frame.handle().destroy();
  }
}

// Children of a cancelled frame have failed: that is the task's error, or the next frame's affair.
void CancellationRuntime::pass_errors_on(Frame& frame) noexcept {
  detail::CaughtError error = take_errors(frame, nullptr);
  if (frame.is_first()) {
    error.remember(frame);  // for finish()
    frame.set_error(error.first());
  } else {
    add_error(*frame.parent(), error);
  }
}

void CancellationRuntime::finish(Strand& strand, OutcomeKind kind) noexcept {
  Frame& frame = strand.first_frame();
  bool has_value = frame.flags_ & Scope::kHasValue;
  detail::LocalValue* locals = frame.locals();
  // Its others (L14) are what this thread remembered last: nothing ran since the frame's end.
  detail::CaughtError error;
  if (kind == OutcomeKind::error) error = detail::CaughtError::taken(strand.error, frame);
  // Destroys what is left of the coroutine; promise::operator delete keeps the block, because the
  // strand has references, and leaves Ended where the frame was.
  frame.phase_ = Phase::done;
  frame.handle().destroy();
  detail::this_thread().running = nullptr;  // nobody looks for bindings in it from here on
  if (locals) detail::release_locals(locals);
  Ended& ended = strand.ended();
  ended.kind = kind;
  ended.has_value = has_value;
  if (kind == OutcomeKind::error) {
    ended.error = std::move(error);
    strand.error.~exception_ptr();
  }
  end(strand);
}

void CancellationRuntime::end(Strand& strand) noexcept {
  Executor& loop = here();
  if (!strand.state.is_private() || strand.waiter.attached() ||
      CancellationState::leaves_husk(strand.state.peek())) {
    end_shared(strand, loop);
    return;
  }
  // Nobody but its parent, here too (W7), can have heard of it: there is nothing to publish.
  --loop.strands_;
  if (strand.parent_link.parent()) release_child(strand, loop);
  free_strand(strand);
}

void CancellationRuntime::end_shared(Strand& strand, Executor& loop) noexcept {
  Scope* parent = strand.parent_link.parent();
  bool parent_here = !parent || home_of(*parent) == loop.home();
  loop.guests_->remove(strand);
  Word before = strand.state.close();
  // From here on a waiter elsewhere may read the outcome (L7: the frame is gone).
  JoinWaiter* waiter = strand.waiter.publish();

  strand.ended().to_handle =
      before & CancellationState::HANDLE;  // L14: who is owed an error is fixed here

  // The strand's own reference goes to one of: the kick under way, the parent elsewhere, the
  // waiter, nobody.
  int owners = 0;
  if (CancellationState::leaves_husk(before)) {
    ++owners;
  } else {
    --loop.strands_;
  }
  if (!parent_here) ++owners;
  bool waiter_takes = waiter && waiter->takes_strand;
  if (waiter_takes) ++owners;
  for (int extra = 1; extra < owners; ++extra) strand.state.add_ref();

  WEFT_DEBUG_ASSERT(!(waiter_takes && parent),
                    "only strands without a parent pass themselves to their waiter");

  bool waiter_tells = waiter && waiter->tells_parent && !parent_here;
  if (waiter) {
    if (waiter->home == loop.home() || waiter->home == 0) {
      waiter->run(*waiter);
    } else {
      waiter->elsewhere = true;
      bool posted = detail::port_at(waiter->home).post(PostEntry(*waiter, PostKind::runnable));
      WEFT_ASSERT(posted, "a loop does not end while a strand of its waits");
    }
  }
  if (parent && parent_here) {
    release_child(strand, loop);
  } else if (parent && !waiter_tells) {
    loop.post_soon(home_of(*parent), PostEntry(strand.link, PostKind::ended));
  }
  if (owners == 0) drop_ref(strand);
}

void CancellationRuntime::child_ended_elsewhere(Strand& child) noexcept {
  release_child(child, here());
  drop_ref(child);
}

void CancellationRuntime::release_child(Strand& child, Executor& loop) noexcept {
  Scope& scope = *child.parent_link.parent();
  scope.topology_.remove(child.parent_link);
  Ended& ended = child.ended();
  if (scope.flags_ & Scope::kIsNursery) {
    Nursery& nursery = as_nursery(scope);
    --nursery.size_;
    if (ended.kind == OutcomeKind::cancelled) nursery.any_cancelled_ = true;
  }
  if (ended.kind == OutcomeKind::error && !ended.to_handle) [[unlikely]]
    child_failed(scope, ended);
  if (!scope.topology_.has_children()) scope_progress(scope, loop);
}

void CancellationRuntime::child_failed(Scope& scope, Ended& ended) noexcept {
  ended.read = true;
  if ((scope.flags_ & Scope::kIsNursery) && as_nursery(scope).on_child_error_) {
    as_nursery(scope).on_child_error_(as_nursery(scope), ended.error);
    return;
  }
  add_error(scope, ended.error);
  cancel_siblings(scope);
}

void CancellationRuntime::cancel_siblings(Scope& scope) noexcept {
  if (scope.flags_ & Scope::kIsNursery) {
    cancel(as_nursery(scope).strand_, reasons::sibling_failed);
  } else {
    cancel_children(scope, reasons::sibling_failed);
  }
}

// The last child has left.
void CancellationRuntime::scope_progress(Scope& scope, Executor& loop) noexcept {
  if (scope.flags_ & Scope::kIsNursery) {
    as_nursery(scope).progress();
    return;
  }
  Phase next;
  if (scope.phase_ == Phase::joining) {
    next = Phase::join_ready;
  } else if (scope.phase_ == Phase::join_unwind) {
    next = Phase::join_unwind_ready;
  } else if (scope.phase_ == Phase::join_exit) {
    next = Phase::join_exit_ready;
  } else {
    return;
  }
  if (scope.leases_.wait()) return;
  scope.phase_ = next;
  push_ready(strand_of(scope), loop);
}

// --- The home loop: cancelling ------------------------------------------------------------------

void CancellationRuntime::kick(Strand& strand) noexcept {
  Executor& loop = here();
  // acquire: whoever sent the kick may have read an older stay here, and the strand be on its way
  // back; then this is what brings its state. [pairs with depart()]
  if (strand.home.load(detail::acquire) != loop.home()) {
    send_kick(strand);  // it has moved; so does its kick
    return;
  }
  Word word = strand.state.set_kicked();
  if (strand.is_nursery()) {
    Nursery& nursery = as_nursery(*strand.parent_link.parent());
    if (word & CancellationState::CLOSED) {
      nursery.progress();
      return;
    }
    fire_nodes(nursery);
    cancel_children(nursery, strand.why());
    return;
  }
  if (word & CancellationState::CLOSED) {  // W4: a husk, and this was what it waited for
    --loop.strands_;
    drop_ref(strand);
    return;
  }
  strand.kick.next = static_cast<std::uintptr_t>(loop.turn_ns());

  Frame& top = *strand.top;
  if (top.phase_ == Phase::moving) return;  // it is not here yet; its arrival looks at the word
  tell_frames(strand, outside_guard(strand, word));
  if ((word & CancellationState::IGNORED) || top.phase_ != Phase::parked) return;

  top.phase_ = Phase::cancelling;
  const CancelReason* outer = std::exchange(detail::this_thread().kick_reason, &strand.why());
  switch (strand.waits_on().cancel()) {
    case Adapter::Answer::over:
      WEFT_ASSERT(top.phase_ == Phase::cancelling,
                  "await_cancel() that resumed its handle returns false");
      top.phase_ = Phase::unwind;
      push_ready(strand, loop);
      break;
    case Adapter::Answer::later:
      break;
    case Adapter::Answer::unsupported:
      top.phase_ = Phase::parked;  // L4: the value is delivered, and the request strikes next
      break;
  }
  detail::this_thread().kick_reason = outer;
}

Frame* CancellationRuntime::outside_guard(Strand& strand, Word word) noexcept {
  Frame* frame = strand.top;
  if (!(word & CancellationState::IGNORED)) return frame;
  // The guard covers its own frame and those inside it.
  while (!(frame->flags_ & Scope::kOwnsIgnore)) frame = frame->parent();
  return frame->parent();
}

void CancellationRuntime::tell_frames(Strand& strand, Frame* frame) noexcept {
  for (; frame; frame = frame->parent()) {
    if (frame->topology_.empty()) continue;
    fire_nodes(*frame);
    cancel_children(*frame, strand.why());
  }
}

void CancellationRuntime::cancel_child(Strand& child, const CancelReason& reason,
                                       Executor& loop) noexcept {
  if (!child.state.is_private()) return cancel(child, reason);
  if (!child.state.request_cancel_private()) return;
  child.reason.store(&reason, detail::relaxed);
  if (!loop.kicks_.empty() || !is_parked_leaf(child)) {
    loop.kicks_.push(PostEntry(child.kick, PostKind::kick));
    return;
  }
  // Its kick would be the next to run, and would find no more than this to do. Done here, a million
  // parked children are walked once, not twice: that walk is all cache misses.
  child.state.set_kicked();
  child.kick.next = static_cast<std::uintptr_t>(loop.turn_ns());
  static_cast<void>(child.waits_on().cancel());  // over, by CancelsAtOnce
  child.top->phase_ = Phase::unwind;
  push_ready(child, loop);
}

// One frame, without members, in a wait whose cancel runs nobody's code: so the list that is being
// walked stays as it is.
bool CancellationRuntime::is_parked_leaf(const Strand& strand) noexcept {
  const Frame& top = *strand.top;
  return top.phase_ == Phase::parked && (strand.wait & Strand::kLeaf) && top.is_first() &&
         top.nothing_to_join() && !(strand.state.peek() & CancellationState::IGNORED);
}

void CancellationRuntime::cancel_children(Scope& scope, const CancelReason& reason) noexcept {
  if (!scope.topology_.has_children()) return;
  Executor& loop = here();
  scope.topology_.for_each_child([&](Strand& child) { cancel_child(child, reason, loop); });
}

void CancellationRuntime::fire_nodes(Scope& scope) noexcept {
  while (!scope.topology_.empty() && !scope.topology_.first()->is_child()) {
    CancelNode& node = CancelNode::from_link(*scope.topology_.first());
    scope.topology_.remove(node.link_);
    node.on_cancel();
    node.drop_ref();
  }
}

void CancellationRuntime::cleanup_nodes(Scope& scope) noexcept {
  while (!scope.topology_.empty() && !scope.topology_.first()->is_child()) {
    CancelNode& node = CancelNode::from_link(*scope.topology_.first());
    scope.topology_.remove(node.link_);
    node.on_cleanup();
    node.drop_ref();
  }
}

bool CancellationRuntime::publish(Scope& scope, CancelNode& node) {
  require_home(scope, "publish_cancel_node()");
  if (std::exchange(node.published_, true)) return false;
  node.add_ref();
  if (scope.is_effectively_cancelled()) {
    node.on_cancel();
    node.drop_ref();
    return true;
  }
  node.link_.scope = reinterpret_cast<std::uintptr_t>(&scope) | ParentLink::kIsNode;
  scope.topology_.add_node(node.link_);
  scope.flags_ |= Scope::kHadMembers;
  node.home_.store(home_of(scope), detail::seq_cst);
  node.on_publish();
  return true;
}

void CancellationRuntime::withdraw(CancelNode& node) noexcept {
  if (!node.link_.next) return;
  node.link_.parent()->topology_.remove(node.link_);
  node.drop_ref();
}

bool CancellationRuntime::enter_ignore(Frame& frame) noexcept {
  CancellationState& state = frame.strand().state;
  if (!(state.load() & CancellationState::IGNORED)) {
    if (!state.try_set_ignored()) return false;
    frame.flags_ |= Scope::kOwnsIgnore;
  }
  ++frame.ignore_depth_;
  return true;
}

void CancellationRuntime::leave_ignore(Frame& frame) noexcept {
  if (--frame.ignore_depth_ > 0 || !(frame.flags_ & Scope::kOwnsIgnore)) return;
  frame.flags_ &= static_cast<std::uint8_t>(~Scope::kOwnsIgnore);
  Strand& strand = frame.strand();
  if (!strand.state.clear_ignored()) return;
  // Outer frames too: the kick walked them, but what joined them since was not told.
  tell_frames(strand, &frame);
}

// --- Small things -------------------------------------------------------------------------------

Strand& CancellationRuntime::strand_of(const Scope& scope) noexcept {
  if (scope.flags_ & Scope::kIsNursery)
    return const_cast<Nursery&>(static_cast<const Nursery&>(scope)).strand_;
  return static_cast<const Frame&>(scope).strand();
}

HomeIndex CancellationRuntime::home_of(const Scope& scope) noexcept {
  return strand_of(scope).home.load(detail::acquire);
}

// Its frame would not wait for a child that a destructor starts. In-line frames are not marked at
// their end, which is the hottest path there is; the coroutine knows.
bool CancellationRuntime::is_being_destroyed(const Scope& scope) noexcept {
  if (scope.phase_ == Phase::done) return true;
  if (scope.phase_ != Phase::running || (scope.flags_ & Scope::kIsNursery)) return false;
  return const_cast<Frame&>(static_cast<const Frame&>(scope)).handle().done();
}

void CancellationRuntime::require_home(const Scope& scope, const char* what) {
  Executor* executor = detail::this_thread().executor;
  if (!executor || executor->home() != home_of(scope) || is_being_destroyed(scope))
    detail::throw_off_home(what);
}

const char* CancellationRuntime::phase_name(const Scope& scope) noexcept {
  switch (scope.phase_) {
    case Phase::running:
      return "<running>";
    case Phase::parked:
      return "waits";
    case Phase::cancelling:
      return "waits, cancelling";
    case Phase::ready:
      return "<scheduled>";
    case Phase::unwind_now:
    case Phase::unwind:
      return "<scheduled>, unwinding";
    case Phase::joining:
      return "ended, waits for its children";
    case Phase::join_ready:
      return "ended, <scheduled>";
    case Phase::join_unwind:
    case Phase::join_unwind_ready:
      return "cancelled, waits for its children";
    case Phase::exit_now:
    case Phase::exit:
    case Phase::join_exit:
    case Phase::join_exit_ready:
      return "ended by ok(), waits for its children";
    case Phase::moving:
    case Phase::move_now:
      return "moves to this loop";
    case Phase::done:
      return "ended";
  }
  return "";
}

Strand* CancellationRuntime::waiter_of_nursery(const Scope& nursery) noexcept {
  return static_cast<const Nursery&>(nursery).waiter_.strand();
}

Strand* CancellationRuntime::needing_nursery(const Scope& nursery) noexcept {
  return static_cast<const Nursery&>(nursery).waiter_.needing();
}

bool CancellationRuntime::joins(const Frame& frame) noexcept {
  Strand& strand = frame.strand();
  if (strand.home.load(detail::acquire) != here().home() || strand.top != &frame) return false;
  return frame.phase_ == Phase::joining || frame.phase_ == Phase::join_unwind ||
         frame.phase_ == Phase::join_exit;
}

Adapter* CancellationRuntime::parked_on(Strand& strand) noexcept {
  Phase phase = strand.top->phase_;
  return phase == Phase::parked || phase == Phase::cancelling ? &strand.waits_on() : nullptr;
}

void CancellationRuntime::mark_nursery(Scope& scope) noexcept { scope.flags_ |= Scope::kIsNursery; }

void CancellationRuntime::move_child(Strand& child, Scope& to) noexcept {
  Scope& from = *child.parent_link.parent();
  from.topology_.remove(child.parent_link);
  --as_nursery(from).size_;
  adopt(child, to);
  if (to.is_effectively_cancelled()) cancel(child, strand_of(to).why());
  if (!from.topology_.has_children()) scope_progress(from, here());
}

void CancellationRuntime::drop_lease_at_home(Scope& scope) noexcept {
  scope.leases_.drop_at_home();
  if (!scope.topology_.has_children()) scope_progress(scope, here());
}

bool CancellationRuntime::try_close_nursery(Scope& scope) noexcept {
  if (scope.topology_.has_children() || scope.leases_.wait()) return false;
  CancellationState& state = strand_of(scope).state;
  Word before = state.close();
  return !CancellationState::leaves_husk(before);
}

// --- Errors -------------------------------------------------------------------------------------

void CancellationRuntime::add_error(Scope& scope, const detail::CaughtError& error) noexcept {
  Executor& loop = here();
  try {
    if (!loop.errors_) loop.errors_ = std::make_unique<detail::ErrorBook>();
    loop.errors_->of(scope).add(error);
    scope.flags_ |= Scope::kHasErrors;
  } catch (const std::bad_alloc&) {
    scope.flags_ |= Scope::kErrorsLost;  // bad_alloc takes its place
  }
}

void CancellationRuntime::keep_others(Frame& frame, const detail::CaughtError& error) noexcept {
  if (!error.has_others()) return;
  detail::CaughtError before;
  if (frame.flags_ & Scope::kHasErrors) before = here().errors_->take(frame);
  add_error(frame, error);
  if (before) add_error(frame, before);
}

bool CancellationRuntime::has_errors(const Scope& scope) noexcept {
  return scope.flags_ & (Scope::kHasErrors | Scope::kErrorsLost);
}

detail::CaughtError CancellationRuntime::take_errors(Scope& scope,
                                                     const std::exception_ptr& first) noexcept {
  auto result = detail::CaughtError::alone(first);
  if (scope.flags_ & Scope::kHasErrors) {
    detail::CaughtError kept = here().errors_->take(scope);
    if (kept.first() == first) {
      result = std::move(kept);  // keep_others()
    } else {
      result.add(kept);
    }
  }
  if (scope.flags_ & Scope::kErrorsLost) {
    result.add(detail::CaughtError::alone(std::make_exception_ptr(std::bad_alloc())));
  }
  scope.flags_ &= static_cast<std::uint8_t>(~(Scope::kHasErrors | Scope::kErrorsLost));
  return result;
}

// --- Scope --------------------------------------------------------------------------------------

bool Scope::is_cancelled() const noexcept {
  return CancellationRuntime::strand_of(*this).state.is_cancelled();
}
bool Scope::is_effectively_cancelled() const noexcept {
  return CancellationRuntime::strand_of(*this).state.is_effectively_cancelled();
}
StopToken Scope::stop_token() const noexcept {
  return StopToken(CancellationRuntime::strand_of(*this).state);
}
void Scope::cancel(const CancelReason& reason) {
  CancellationRuntime::require_home(*this, "Scope::cancel()");
  CancellationRuntime::cancel(CancellationRuntime::strand_of(*this), reason);
}
bool Scope::publish_cancel_node(CancelNode& node) {
  return CancellationRuntime::publish(*this, node);
}

namespace detail {

void wake_strand(Strand& strand) noexcept { CancellationRuntime::wake(strand); }
void enter_strand(Strand& strand) noexcept { CancellationRuntime::enter_parked(strand); }

void InlineSlot::rethrow() {
  child->handle().destroy();  // L7: first
  std::exception_ptr thrown = std::move(error);
  error.~exception_ptr();
  std::rethrow_exception(std::move(thrown));
}

void Frame::fail_with_current_exception() noexcept {
  CaughtError error = CaughtError::taken(std::current_exception(), *this);
  CancellationRuntime::keep_others(*this, error);
  set_error(error.first());
}

void Frame::set_error(std::exception_ptr error) noexcept {
  flags_ |= kFailed;
  if (is_first()) {
    new (&strand().error) std::exception_ptr(std::move(error));
  } else {
    new (&inline_slot().error) std::exception_ptr(std::move(error));
  }
}

void Frame::merge_errors() noexcept {
  std::exception_ptr own;
  if (failed()) own = is_first() ? strand().error : inline_slot().error;
  CaughtError all = CancellationRuntime::take_errors(*this, own);
  all.remember(is_first() ? *this : *parent());  // for finish(), or the caller's await_resume()
  if (!failed()) set_error(all.first());
}

void throw_off_home(const char* what) {
  throw UsageError(
      std::string(what) +
      " was called away from the scope's home loop, or after the scope had ended: hold a "
      "PromiseChildLease, a StartedTask or a CancelHandle there instead");
}

}  // namespace detail

}  // namespace weft::inline v0
