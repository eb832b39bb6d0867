// SPDX-License-Identifier: MIT
#pragma once
// Stores on a lock file of SQLite's whose leases are measured on the loop's clock: so it runs on a VirtualLoop.
#include <memory>
#include <string>

#include "durable/memory_store.h"
#include "support/lock_tables.h"
#include "support/temporary_directory.h"

namespace weft::test {

class VirtualSqlite {
 public:
  // Another session.
  [[nodiscard]] std::unique_ptr<durable::LockStore> make() const {
    return std::make_unique<durable::detail::InlineStore>("sqlite:test", table_);
  }
  [[nodiscard]] std::string path() const { return directory_.file("locks.db"); }

 private:
  TemporaryDirectory directory_{TemporaryDirectory::where_syncs_are_cheap()};
  std::shared_ptr<durable::detail::SharedTable> table_ =
      durable::detail::share_table(open_table(directory_.file("locks.db")));
};

}  // namespace weft::test
