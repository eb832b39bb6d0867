// SPDX-License-Identifier: MIT
// The suite of durable::Mutex (support/mutex_suite.h) on a real etcd, in real time.
#include "support/etcd.h"
#include "support/mutex_suite.h"

namespace weft::test {

class EtcdStores final : public Stores {
 public:
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const override {
    return or_throw(durable::make_store(shared_etcd().url(prefix_)));
  }

 private:
  std::string prefix_ = fresh_prefix();
};

constexpr MutexSetting kOnEtcd{"RealTime", false, std::chrono::milliseconds(50),
                               std::chrono::seconds(2), fresh_stores<EtcdStores>};
INSTANTIATE_TEST_SUITE_P(OnEtcd, MutexSuite, ::testing::Values(&kOnEtcd), setting_name);

}  // namespace weft::test
