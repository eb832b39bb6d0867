// SPDX-License-Identifier: MIT
#include "weft/sync/mutex.h"

#include <cstdlib>
#include <string>

#include "describe.h"
#include "lock_waits.h"
#include "weft/base/assert.h"
#include "weft/base/log.h"
#include "weft/base/steady_clock.h"

namespace weft::inline v0 {

namespace {

using detail::loop_name;

}  // namespace

template <class Sharing>
BasicMutex<Sharing>::~BasicMutex() {
  if (!core_.is_locked()) [[likely]]
    return;
  log(LogLevel::error, detail::thing_name(kKind, name_) +
                           " is destroyed while it is held: locked in " +
                           detail::place_name(core_.holder().who().at) + " on " +
                           loop_name(core_.owner()) + ". Let it outlive the tasks that use it.");
  std::abort();
}

template <class Sharing>
std::optional<BasicMutexGuard<Sharing>> BasicMutex<Sharing>::guarded(
    std::source_location at) noexcept {
  std::optional<Guard> guard{Guard(*this)};
  // After the guard has come to its place.
  core_.holder().set({detail::thread_state().running, at});
  held_.locked(kKind, name_, at);
  return guard;
}

template <class Sharing>
void BasicMutex<Sharing>::unlock_contended() noexcept {
  Executor* here = detail::thread_state().executor;
  if (!here) abort_not_owner();
  const auto [was_owner, next] = core_.unlock(here->home(), here->coarse_turn_ns());
  if (!was_owner) abort_not_owner();
  if (next) detail::Waiter::from(*next).notify();
}

template <class Sharing>
bool BasicMutex<Sharing>::Wait::take_or_wait() noexcept {
  const detail::ThreadState& thread = detail::thread_state();
  begins(thread);
  mutex_.entry_.enter();
  if (!mutex_.core_.lock_or_wait(*this, thread.executor->coarse_turn_ns())) return false;
  mutex_.core_.holder().set(who());
  return true;
}

template <class Sharing>
detail::Withdrawn BasicMutex<Sharing>::Wait::withdraw() noexcept {
  const std::int64_t now = detail::thread_state().executor->coarse_turn_ns();
  const auto [how, next] = mutex_.core_.withdraw(*this, now);
  if (next) from(*next).notify();
  return how;
}

// Off any loop there is no turn whose time was asked for.
template <class Sharing>
bool BasicMutex<Sharing>::relock(detail::LockWaiter& waiter) noexcept {
  Executor* here = detail::thread_state().executor;
  entry_.enter();
  return core_.lock_or_wait(waiter, here ? here->coarse_turn_ns() : detail::coarse_steady_ns());
}

template <class Sharing>
void BasicMutex<Sharing>::Wait::went_on(Posted& work) noexcept {
  auto& self = static_cast<Wait&>(from_posted(work));
  // M4; or it was cancelled, and has passed the lock on.
  if (self.state == detail::WaitState::notified) self.mutex_.core_.holder().set(self.who());
  arrived(work);
}

template <class Sharing>
void BasicMutex<Sharing>::Entry::collect(LockEntry& entry, detail::HomeIndex home,
                                         std::vector<detail::LockReport>& waits) {
  BasicMutex& mutex = static_cast<Entry&>(entry).mutex;
  if (!mutex.bond_.admits(home)) return;  // it entered the book after its first use
  std::vector<detail::WaitNode*> nodes;
  const auto owner = detail::list_waiting(mutex.core_, home, nodes);
  for (const detail::WaitNode* node : nodes) {
    detail::add_wait({.kind = kKind, .name = mutex.name_, .lock = &mutex}, *node,
                     {owner.who, owner.home}, waits);
  }
}

template <class Sharing>
void BasicMutex<Sharing>::abort_not_owner() const noexcept {
  const Executor* here = detail::thread_state().executor;
  std::string message = "unlock() of " + detail::thing_name(kKind, name_);
  if (!core_.is_locked()) {
    message += " that nobody holds";
  } else {
    message += " on " + loop_name(here ? here->home() : 0) + ", but " + loop_name(core_.owner()) +
               " holds it: locked in " + detail::place_name(core_.holder().who().at) +
               ". A guard stays on the loop that locked it: unlock before resume_on(), and do not "
               "return it out of on() or give it to a task elsewhere.";
  }
  log(LogLevel::error, message);
  std::abort();
}

template <class Sharing>
void BasicMutex<Sharing>::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const auto [owner, place] = core_.standing_of(waiter);
  std::string text = detail::thing_name(kKind, name_);
  if (place.place > 0) {
    text += " held by " + detail::holder_name(owner.home, owner.who) +
            detail::held_for(owner.since) + ", " + detail::ordinal(place);
  } else {
    text += ", just locked";
  }
  tree.node(text);
}

template class BasicMutex<detail::BetweenLoops>;
template class BasicMutex<detail::OnOneLoop>;

}  // namespace weft::inline v0
