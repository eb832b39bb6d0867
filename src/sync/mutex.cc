// SPDX-License-Identifier: MIT
#include "weft/sync/mutex.h"

#include <cstdlib>
#include <string>

#include "describe.h"
#include "weft/base/assert.h"
#include "weft/base/log.h"

namespace weft::inline v0 {

namespace {

using detail::loop_name;
using detail::place;

std::string called(const char* name) { return detail::called("Mutex", name); }

}  // namespace

Mutex::~Mutex() {
  if (!core_.is_locked()) [[likely]]
    return;
  log(LogLevel::error, called(name_) + " is destroyed while it is held: locked at " +
                           place(held_at_.load(detail::relaxed)) + " on " +
                           loop_name(core_.owner()) + ". Let it outlive the tasks that use it.");
  std::abort();
}

void Mutex::unlock_contended() noexcept {
  const Executor* here = detail::thread_state().executor;
  const auto [was_owner, next] = core_.unlock(here ? here->home() : 0);
  if (!was_owner) abort_not_owner();
  if (next) detail::Waiter::from(*next).notify();
}

bool Mutex::Wait::take_or_wait() noexcept { return mutex_.core_.lock_or_wait(*this); }

detail::Withdrawn Mutex::Wait::withdraw() noexcept {
  const auto [how, next] = mutex_.core_.withdraw(*this);
  if (next) from(*next).notify();
  return how;
}

void Mutex::abort_not_owner() const noexcept {
  const Executor* here = detail::thread_state().executor;
  std::string message = "unlock() of " + called(name_);
  if (!core_.is_locked()) {
    message += " that nobody holds";
  } else {
    message += " on " + loop_name(here ? here->home() : 0) + ", but " + loop_name(core_.owner()) +
               " holds it: locked at " + place(held_at_.load(detail::relaxed)) +
               ". A guard stays on the loop that locked it: unlock before resume_on(), and do not "
               "return it out of on() or give it to a task elsewhere.";
  }
  log(LogLevel::error, message);
  std::abort();
}

void Mutex::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const auto [at, of] = core_.place_of(waiter);
  std::string text = called(name_);
  if (at == 0) {
    text += ", just locked";
  } else {
    text += " held by " + loop_name(core_.owner()) + ", locked at " +
            place(held_at_.load(detail::relaxed)) + "; " + detail::standing({at, of});
  }
  tree.node(text);
}

}  // namespace weft::inline v0
