// SPDX-License-Identifier: MIT
#include "weft/sync/shared_mutex.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "describe.h"
#include "lock_waits.h"
#include "weft/base/log.h"

namespace weft::inline v0 {

namespace {

using detail::loop_name;

std::string called(const char* name) { return detail::thing_name("SharedMutex", name); }

}  // namespace

// "loop 2, locked in transfer() at bank.cc:42"; "3 who share it, the last locked in …".
std::string SharedMutex::holders() const {
  const std::source_location place = core_.holder().who().at;
  const std::string at =
      place.line() == 0 ? std::string("locked just now") : "locked in " + detail::place_name(place);
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

// The guards are noted after they have come to their places.
std::optional<SharedMutexGuard> SharedMutex::guarded(std::source_location at) noexcept {
  std::optional<Guard> guard{Guard(*this)};
  entered_alone({detail::thread_state().running, at});
  held_.locked(kKind, name_, at);
  return guard;
}
std::optional<SharedMutexSharedGuard> SharedMutex::guarded_shared(
    std::source_location at) noexcept {
  std::optional<SharedGuard> guard{SharedGuard(*this)};
  guard->noted_ = entered_shared({detail::thread_state().running, at});
  return guard;
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

// Whoever waits needs all to leave who are inside: it stands first, and cannot enter beside them; or it
// stands behind one that cannot.
void SharedMutex::Entry::collect(LockEntry& entry, detail::HomeIndex home,
                                 std::vector<detail::LockReport>& waits) {
  SharedMutex& mutex = static_cast<Entry&>(entry).mutex;
  std::vector<detail::WaitNode*> nodes;
  const auto owner = detail::list_waiting(mutex.core_, home, nodes);
  if (nodes.empty()) return;
  std::vector<detail::InTheWay> holders;
  if (owner.home) {
    holders.push_back({owner.who, owner.home});
  } else {
    for (const Who& each : mutex.sharers_.all()) holders.push_back({each, 0});
  }
  for (const detail::WaitNode* node : nodes) {
    for (const detail::InTheWay& each : holders) {
      detail::add_wait({.kind = kKind, .name = mutex.name_, .lock = &mutex}, *node, each, waits);
    }
  }
}

void SharedMutex::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const auto [owner, place] = core_.standing_of(waiter);
  const bool shares = detail::SharedMutexCore::shares(waiter);
  std::string text = called(name_) + (shares ? ", wants to share it, " : ", wants it alone, ");
  if (place.place == 0) {
    text += "just locked";
  } else {
    text += "held by " + (owner.home ? detail::holder_name(owner.home, owner.who) : holders()) +
            "; " + detail::standing(place);
  }
  tree.node(text);
}

}  // namespace weft::inline v0
