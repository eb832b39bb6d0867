// SPDX-License-Identifier: MIT
// The suite of durable::Mutex (support/mutex_suite.h) in memory, on the virtual clock.
#include "support/mutex_suite.h"

namespace weft::test {

class MemoryStores final : public Stores {
 public:
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const override {
    return or_throw(durable::make_store(url_));
  }

 private:
  std::string url_ = fresh_store_url();
};

constexpr MutexSetting kInMemory{"VirtualTime", true, std::chrono::seconds(1),
                                 std::chrono::seconds(15), fresh_stores<MemoryStores>};
INSTANTIATE_TEST_SUITE_P(InMemory, MutexSuite, ::testing::Values(&kInMemory), setting_name);

}  // namespace weft::test
