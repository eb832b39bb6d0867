// SPDX-License-Identifier: MIT
// Semaphore against a model that is a number and a queue. A failure prints what to put into
// RC_PARAMS to see it again, and the shortest sequence of steps that fails.
#if __has_include(<rapidcheck.h>)
#include <rapidcheck.h>

#include "support/permit_comparison.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Tested {
  static constexpr unsigned kPermits = 5;
  using Permit = SemaphorePermit;
  static unsigned count_for(unsigned number) { return 1 + number % kPermits; }

  Task<Permit> acquire(unsigned count) { co_return co_await semaphore.acquire(count); }
  std::optional<Permit> try_acquire(unsigned count) { return semaphore.try_acquire(count); }
  [[nodiscard]] std::string differs_from(unsigned free) const {
    return semaphore.available() == free ? "" : "so many are free; ";
  }

  Semaphore semaphore{kPermits};
};
using Comparison = PermitComparison<Tested>;

TEST(SemaphoreProperty, DoesWhatANumberAndAQueueDo) {
  auto property = [](const std::vector<Comparison::Step>& steps) {
    Comparison comparison;
    const std::string differences = comparison.differences(steps);
    RC_CLASSIFY(steps.size() > 10, "more than ten steps");
    if (!differences.empty()) RC_FAIL(differences);
  };
  EXPECT_TRUE(rc::check(property));
}

}  // namespace
#endif
