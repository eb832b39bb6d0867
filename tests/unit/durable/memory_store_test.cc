// SPDX-License-Identifier: MIT
// The engine memory:// does what every store must.
#include "durable/memory_store.h"

#include "support/durable_fixture.h"
#include "support/store_suite.h"
#include "weft/testing/virtual_loop.h"

namespace weft::test {

struct MemoryFactory {
  using Loop = weft::testing::VirtualLoop;
  std::unique_ptr<durable::LockStore> make() { return durable::detail::make_memory_store(name); }
  static std::chrono::nanoseconds lease() { return std::chrono::seconds(1); }
  std::string name = fresh_store_url();
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreSuite, MemoryFactory);

}  // namespace weft::test
