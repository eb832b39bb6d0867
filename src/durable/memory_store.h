// SPDX-License-Identifier: MIT
#pragma once
// The engine memory://name: a table that the engines of one process share by its name. Calls are carried out at once, so it
// runs on a VirtualLoop, and its leases are measured on the loop's clock.
#include <memory>
#include <string>

#include "durable/table_store.h"
#include "weft/core/executor.h"

namespace weft::inline v0::durable::detail {

// A table, and the sessions on it that are in this process. Any thread.
class SharedTable;

class InlineStore final : public TableStore {
 public:
  InlineStore(std::string url, std::shared_ptr<SharedTable> table);
  ~InlineStore() override;

  Task<LockResult<>> open(Listener& listener) override;
  Task<void> close() override;
  [[nodiscard]] std::int64_t lease_clock() const override;

 private:
  void submit(TableCall& call) override;

  std::shared_ptr<SharedTable> table_;
  const Executor* home_ = nullptr;  // whose clock is asked, on any thread; null: not open
  bool joined_ = false;
};

// For several InlineStores; tests give one of SQLite's.
[[nodiscard]] std::shared_ptr<SharedTable> share_table(std::unique_ptr<LockTable> table);

// The one of that name, which lives as long as an engine has it.
[[nodiscard]] std::unique_ptr<LockStore> make_memory_store(const std::string& name);

}  // namespace weft::inline v0::durable::detail
