// SPDX-License-Identifier: MIT
#pragma once
// What an Engine is made of: its store, and the workflows by resource. The engine's loop only.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "durable/held_lock.h"
#include "durable/mutex_workflow.h"
#include "weft/core/nursery.h"
#include "weft/durable/engine.h"
#include "weft/durable/lock_statistics.h"
#include "weft/durable/lock_store.h"
#include "weft/sync/event.h"

namespace weft::inline v0::durable::detail {

class EngineState final : public LockStore::Listener {
 public:
  explicit EngineState(std::unique_ptr<LockStore> store) noexcept : store_(std::move(store)) {}

  Task<LockResult<>> open(Nursery& nursery);
  Task<void> drain();
  Task<void> close();

  [[nodiscard]] LockStore& store() noexcept { return *store_; }
  [[nodiscard]] Executor& home() const;
  [[nodiscard]] LockStatistics& statistics() noexcept { return statistics_; }
  [[nodiscard]] std::size_t workflows() const noexcept { return book_.size(); }

  // Into the workflow of its resource, which is started if there is none.
  void enter(HeldLock& held);
  // Starts the workflow of a resource, or joins it; and the resource is there, in the store.
  Task<LockResult<>> join(const MutexOptions& options, std::uint32_t capacity);
  // D6: from now on who comes starts another.
  void forget(MutexWorkflow& workflow);

  // A number for a ticket of this workflow.
  [[nodiscard]] TicketNumber number_ticket(MutexWorkflow& workflow);
  void forget_ticket(TicketNumber number) { owners_.erase(number); }

 private:
  // Started if there is none. LockError::withdrawn, mismatch.
  [[nodiscard]] LockResult<std::shared_ptr<MutexWorkflow>> workflow_of(const std::string& resource,
                                                                       std::uint32_t capacity);
  void granted(TicketNumber ticket, TokenBlock tokens) override;
  void gone(TicketNumber ticket) override;

  std::unique_ptr<LockStore> store_;
  Executor* home_ = nullptr;    // null: not open
  Nursery* nursery_ = nullptr;  // null: not open, or draining
  std::map<std::string, std::shared_ptr<MutexWorkflow>> book_;
  std::unordered_map<TicketNumber, MutexWorkflow*> owners_;
  TicketNumber next_number_ = 1;
  Event empty_{"the end of a lock engine's workflows"};
  LockStatistics statistics_;
};

}  // namespace weft::inline v0::durable::detail
