// SPDX-License-Identifier: MIT
#include "weft/sync/barrier.h"

#include <string>

#include "describe.h"
#include "weft/base/assert.h"

namespace weft::inline v0 {

Barrier::Barrier(Count parties, const char* name) : core_(parties), name_(name) {
  if (parties == 0)
    throw UsageError(detail::thing_name("Barrier", name) + " needs one party at least");
}

Barrier::~Barrier() {
  if (core_.has_waiters()) [[unlikely]]
    detail::abort_awaited({"Barrier", name_});
}

void Barrier::refuse() const {
  throw UsageError("all parties of " + detail::thing_name("Barrier", name_) +
                   " have called arrive_and_drop(): nobody is left to arrive");
}

void Barrier::describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter) {
  const detail::WaitPlace place = core_.place_of(waiter);
  const std::string missing =
      std::to_string(core_.missing()) + " missing, " + detail::standing(place);
  tree.node(detail::thing_name("Barrier", name_) + ", " +
            (place.place == 0 ? "phase just over" : missing));
}

}  // namespace weft::inline v0
