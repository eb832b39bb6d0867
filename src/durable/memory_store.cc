// SPDX-License-Identifier: MIT
#include "durable/memory_store.h"

#include <map>
#include <mutex>
#include <utility>

#include "durable/memory_table.h"
#include "weft/core/executor.h"

namespace weft::inline v0::durable::detail {

namespace {
std::int64_t loop_clock() { return Executor::current("a lock store").now_ns(); }
}  // namespace

class SharedTable {
 public:
  explicit SharedTable(std::unique_ptr<LockTable> table) noexcept : table_(std::move(table)) {}

  void enter(TableStore& store) {
    std::lock_guard lock(mutex_);
    stores_.emplace(store.session(), &store);
  }
  void leave(TableStore& store) {
    std::lock_guard lock(mutex_);
    stores_.erase(store.session());
  }
  void perform(TableCall& call, LeaseClock clock) {
    std::lock_guard lock(mutex_);
    for (SessionId session : carry_out(*table_, {&call}, clock, ++commits_)) {
      if (auto place = stores_.find(session); place != stores_.end()) place->second->wake();
    }
  }

 private:
  std::mutex mutex_;  // guards all that follows
  std::unique_ptr<LockTable> table_;
  std::map<SessionId, TableStore*> stores_;
  std::uint64_t commits_ = 0;
};

std::shared_ptr<SharedTable> share_table(std::unique_ptr<LockTable> table) {
  return std::make_shared<SharedTable>(std::move(table));
}

std::unique_ptr<LockStore> make_memory_store(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<SharedTable>> tables;
  static MemoryTable::Counter tokens{1};  // for ever, whichever tables come and go
  std::lock_guard lock(mutex);
  std::weak_ptr<SharedTable>& place = tables[name];
  std::shared_ptr<SharedTable> table = place.lock();
  if (!table) place = table = share_table(std::make_unique<MemoryTable>(tokens));
  return std::make_unique<InlineStore>("memory://" + name, std::move(table));
}

InlineStore::InlineStore(std::string url, std::shared_ptr<SharedTable> table)
    : TableStore(std::move(url)), table_(std::move(table)) {}

InlineStore::~InlineStore() {
  if (joined_) table_->leave(*this);
}

Task<LockResult<>> InlineStore::open(Listener& listener) {
  home_ = &Executor::current("a lock store");
  table_->enter(*this);
  joined_ = true;
  co_return co_await TableStore::open(listener);
}

Task<void> InlineStore::close() {
  if (std::exchange(joined_, false)) table_->leave(*this);
  co_return;
}

void InlineStore::submit(TableCall& call) { table_->perform(call, &loop_clock); }

std::int64_t InlineStore::lease_clock() const { return home_ ? home_->now_ns() : loop_clock(); }

}  // namespace weft::inline v0::durable::detail
