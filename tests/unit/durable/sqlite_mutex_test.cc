// SPDX-License-Identifier: MIT
// The suite of durable::Mutex (support/mutex_suite.h) in memory and on a lock file, both on the virtual clock; and on the engine
// sqlite:// as it is shipped, with its writer thread and its pipes, in real time.
#include "support/mutex_suite.h"
#include "support/virtual_sqlite.h"
#include "weft/testing/virtual_loop.h"

namespace weft::test {

struct VirtualTime {
  using Loop = weft::testing::VirtualLoop;
  static constexpr bool kExact = true;
  static std::chrono::nanoseconds unit() { return std::chrono::seconds(1); }
  static std::chrono::nanoseconds lease() { return std::chrono::seconds(15); }
};
struct MutexInMemory : VirtualTime {
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const {
    return or_throw(durable::make_store(url));
  }
  std::string url = fresh_store_url();
};
struct MutexOnSqlite : VirtualTime, VirtualSqlite {};

struct MutexOnSqliteAsShipped {
  using Loop = EventLoop;
  static constexpr bool kExact = false;
  static std::chrono::nanoseconds unit() { return std::chrono::milliseconds(20); }
  static std::chrono::nanoseconds lease() { return std::chrono::seconds(1); }
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const {
    return or_throw(durable::make_store("sqlite://" + directory.file("locks.db")));
  }
  TemporaryDirectory directory{TemporaryDirectory::where_syncs_are_cheap()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(InMemory, MutexSuite, MutexInMemory);
INSTANTIATE_TYPED_TEST_SUITE_P(OnSqliteInVirtualTime, MutexSuite, MutexOnSqlite);
INSTANTIATE_TYPED_TEST_SUITE_P(OnSqliteAsShipped, MutexSuite, MutexOnSqliteAsShipped);

}  // namespace weft::test
