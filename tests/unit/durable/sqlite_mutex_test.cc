// SPDX-License-Identifier: MIT
// The suite of durable::Mutex (support/mutex_suite.h) on a lock file, on the virtual clock; and on the engine sqlite:// as it is
// shipped, with its writer thread and its pipes, in real time.
#include "support/mutex_suite.h"
#include "support/virtual_sqlite.h"

namespace weft::test {

class VirtualSqliteStores final : public Stores {
 public:
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const override { return file_.make(); }

 private:
  VirtualSqlite file_;
};
class SqliteStores final : public Stores {
 public:
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const override {
    return or_throw(durable::make_store("sqlite://" + directory_.file("locks.db")));
  }

 private:
  TemporaryDirectory directory_{TemporaryDirectory::where_syncs_are_cheap()};
};

using std::chrono::milliseconds, std::chrono::seconds;
constexpr MutexSetting kOnSqlite{"InVirtualTime", true, seconds(1), seconds(15),
                                 fresh_stores<VirtualSqliteStores>};
constexpr MutexSetting kOnSqliteAsShipped{"AsShipped", false, milliseconds(20), seconds(1),
                                          fresh_stores<SqliteStores>};
INSTANTIATE_TEST_SUITE_P(OnSqlite, MutexSuite, ::testing::Values(&kOnSqlite, &kOnSqliteAsShipped),
                         setting_name);

}  // namespace weft::test
