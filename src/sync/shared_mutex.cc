// SPDX-License-Identifier: MIT
#include "weft/sync/shared_mutex.h"

#include <cstdlib>
#include <string>

#include "describe.h"
#include "weft/base/log.h"

namespace weft::inline v0 {

namespace {

using detail::loop_name;

std::string called(const char* name) { return detail::called("SharedMutex", name); }

}  // namespace

// "loop 2, locked in transfer() at bank.cc:42"; "3 who share it, the last locked in …".
std::string SharedMutex::holders() const {
  const std::string at = "locked in " + detail::place_name(held_at_.load(detail::relaxed));
  if (core_.is_exclusive()) return loop_name(core_.owner()) + ", " + at;
  return std::to_string(core_.sharers()) + " who share it, the last " + at;
}

SharedMutex::~SharedMutex() {
  if (core_.is_free()) [[likely]]
    return;
  log(LogLevel::error, called(name_) + " is destroyed while it is held by " + holders() +
                           ". Let it outlive the tasks that use it.");
  std::abort();
}

void SharedMutex::unlock_contended() noexcept {
  const Executor* here = detail::thread_state().executor;
  detail::WaitList admitted;
  if (!core_.unlock(here ? here->home() : 0, admitted)) abort_not_owner();
  detail::Waiter::notify_all(admitted);
}

void SharedMutex::abort_not_owner() const noexcept {
  const Executor* here = detail::thread_state().executor;
  std::string message = "unlock() of " + called(name_);
  if (core_.is_free()) {
    message += " that nobody holds";
  } else if (!core_.is_exclusive()) {
    message += " that is held by " + holders() + ": a shared lock is left by unlock_shared()";
  } else {
    message += " on " + loop_name(here ? here->home() : 0) + ", but it is held by " + holders() +
               ". A guard that has it alone stays on the loop that locked it: unlock before "
               "resume_on(), and do not return it out of on() or give it to a task elsewhere.";
  }
  log(LogLevel::error, message);
  std::abort();
}

void SharedMutex::abort_not_shared() const noexcept {
  log(LogLevel::error, "unlock_shared() of " + called(name_) +
                           (core_.is_free() ? std::string(" that nobody holds")
                                            : ", but it is held alone by " + holders()));
  std::abort();
}

void SharedMutex::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const detail::WaitPlace at = core_.place_of(waiter);
  const bool shares = waiter.amount == static_cast<std::uint32_t>(Mode::shared);
  std::string text = called(name_) + (shares ? ", wants to share it, " : ", wants it alone, ");
  if (at.place == 0) {
    text += "just locked";
  } else {
    text += "held by " + holders() + "; " + detail::standing(at);
  }
  tree.node(text);
}

}  // namespace weft::inline v0
