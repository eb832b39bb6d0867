// SPDX-License-Identifier: MIT
#include "weft/sync/semaphore.h"

#include <cstdlib>
#include <string>

#include "describe.h"
#include "weft/base/assert.h"
#include "weft/base/log.h"

namespace weft::inline v0 {

namespace {

std::string called(const char* name) { return detail::thing_name("Semaphore", name); }

}  // namespace

Semaphore::Semaphore(Limits limits, const char* name) : core_(limits), name_(name) {
  if (limits.max == 0 || limits.permits > limits.max) {
    throw UsageError(called(name) + " of " + std::to_string(limits.permits) +
                     " permits and at most " + std::to_string(limits.max) +
                     ": there must be one at least, and no more at the start than at most");
  }
}

Semaphore::~Semaphore() {
  if (core_.has_waiters()) [[unlikely]]
    detail::abort_awaited({"Semaphore", name_});
}

void Semaphore::refuse_acquire(Count count) const {
  throw UsageError("acquire(" + std::to_string(count) + ") of " + called(name_) + ": from 1 to " +
                   std::to_string(max()) + " is possible, others would wait for ever");
}

void Semaphore::refuse_release(Count count) const {
  throw UsageError("release(" + std::to_string(count) + ") of " + called(name_) +
                   ": more than its maximum, " + std::to_string(max()) +
                   ", would be free; was something released twice?");
}

void Semaphore::abort_released_twice() const noexcept {
  log(LogLevel::error, called(name_) + ": a permit comes back and all " + std::to_string(max()) +
                           " are free: release() was called for what a Permit gives back");
  std::abort();
}

void Semaphore::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const detail::WaitPlace place = core_.place_of(waiter);
  tree.node(called(name_) + ", wants " + std::to_string(waiter.amount) + ", " +
            (place.place == 0 ? std::string("just acquired") : detail::standing(place)));
}

}  // namespace weft::inline v0
