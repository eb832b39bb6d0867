// SPDX-License-Identifier: MIT
// SharedMutex against a model that is a number and a queue: who looks takes one of so many permits, who
// changes takes all. A failure prints what to put into RC_PARAMS to see it again, and the shortest
// sequence of steps that fails.
#if __has_include(<rapidcheck.h>)
#include <rapidcheck.h>

#include "support/permit_comparison.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Tested {
  static constexpr unsigned kPermits = 1000;  // more than ever look
  struct Permit {
    SharedMutexGuard alone;
    SharedMutexSharedGuard beside;
    explicit operator bool() const { return alone || beside; }
    void release() {
      alone.unlock();
      beside.unlock();
    }
  };
  static unsigned count_for(unsigned number) { return number % 3 == 0 ? kPermits : 1; }

  Task<Permit> acquire(unsigned count) {
    Permit permit;
    if (count == 1) {
      permit.beside = co_await mutex.lock_shared();
    } else {
      permit.alone = co_await mutex.lock();
    }
    co_return permit;
  }
  std::optional<Permit> try_acquire(unsigned count) {
    Permit permit;
    if (count == 1) {
      if (auto beside = mutex.try_lock_shared()) permit.beside = std::move(*beside);
    } else if (auto alone = mutex.try_lock()) {
      permit.alone = std::move(*alone);
    }
    if (!permit) return std::nullopt;
    return permit;
  }
  [[nodiscard]] std::string differs_from(unsigned free) const {
    std::string found;
    if (mutex.is_locked() != (free == 0)) found += "somebody has it alone; ";
    if (mutex.shared_count() != (free == 0 ? 0 : kPermits - free)) found += "so many share it; ";
    return found;
  }

  SharedMutex mutex;
};
using Comparison = PermitComparison<Tested>;

TEST(SharedMutexProperty, DoesWhatANumberAndAQueueDo) {
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
