// SPDX-License-Identifier: MIT
// The suite of durable::Mutex (support/mutex_suite.h) on a real etcd, in real time.
#include "support/etcd.h"
#include "support/mutex_suite.h"

namespace weft::test {

struct MutexOnEtcd {
  using Loop = EventLoop;
  static constexpr bool kExact = false;
  static std::chrono::nanoseconds unit() { return std::chrono::milliseconds(50); }
  static std::chrono::nanoseconds lease() { return std::chrono::seconds(2); }
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const {
    return or_throw(durable::make_store(shared_etcd().url(prefix)));
  }
  std::string prefix = fresh_prefix();
};

INSTANTIATE_TYPED_TEST_SUITE_P(OnEtcd, MutexSuite, MutexOnEtcd);

}  // namespace weft::test
