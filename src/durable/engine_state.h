// SPDX-License-Identifier: MIT
#pragma once
// What an Engine is made of: its store, and the workflows by resource. The engine's loop only, but home() and url().
//
// Handles and calls that are under way have a share in it, so that who comes late, from another loop, finds that the engine has ended.
// The store does not outlive the Engine.
//
// Invariants
//   E1  who holds a lock, and who has a call of the store's under way here, is a guest; the store is closed when the last one has left.
//   E2  nursery_ is null when the engine's tasks are to end, by whatever cause; nothing is started from then on.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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
  explicit EngineState(std::unique_ptr<LockStore> store)
      : store_(std::move(store)), url_(store_->url()) {}

  Task<LockResult<>> open(Nursery& nursery);
  Task<void> drain();
  Task<void> close();

  void drop_store() { store_.reset(); }

  // Requires: a guest, or a task of the engine's.
  [[nodiscard]] LockStore& store() noexcept { return *store_; }
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] Executor& home() const;
  [[nodiscard]] LockStatistics& statistics() noexcept { return statistics_; }
  [[nodiscard]] std::size_t workflows() const noexcept { return book_.size(); }

  // Into the workflow of its resource, which is started if there is none.
  void enter(HeldLock& held);
  // Starts the workflow of a resource, or joins it; and the resource is there, in the store. Within acquire_timeout.
  Task<LockResult<>> join(const MutexOptions& options, std::uint32_t capacity);
  [[nodiscard]] Task<LockResult<std::vector<ResourceReport>>> report(
      std::optional<std::string> resource);
  [[nodiscard]] Task<LockResult<std::size_t>> revoke(std::string resource);
  // E1.
  void guest_came() noexcept { ++guests_; }
  void guest_left() noexcept {
    if (--guests_ == 0) guests_left_.set();
  }
  // D6: from now on who comes starts another.
  void forget(MutexWorkflow& workflow);

  // A number for a ticket of this workflow.
  [[nodiscard]] TicketNumber number_ticket(MutexWorkflow& workflow);
  void forget_ticket(TicketNumber number) { owners_.erase(number); }

 private:
  // Of a resource, with this capacity.
  using Place = std::pair<std::string, std::uint32_t>;
  // A call of the store's that nobody need wait for. Without an answer when it is over: the engine has ended.
  struct Joining {
    Event over{"a lock store's answer"};
    std::optional<LockResult<>> answer;
  };
  class Guest {
   public:
    explicit Guest(EngineState& engine) noexcept : engine_(engine) { engine_.guest_came(); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;
    ~Guest() { engine_.guest_left(); }

   private:
    EngineState& engine_;
  };

  [[nodiscard]] Task<void> run_store();
  // E2. Who waits and who holds is told.
  void end();
  [[nodiscard]] Task<void> wait_for_guests();
  // One at a time for a resource, whoever asks: who has given up may ask again.
  [[nodiscard]] std::shared_ptr<Joining> begin_joining(const Place& place);
  [[nodiscard]] Task<void> carry_out(Place place, std::shared_ptr<Joining> joining);
  // A call of the store's. Cancelled when the engine ends.
  template <class R, class Call>
  [[nodiscard]] Task<LockResult<R>> ask(Call call);
  // Started if there is none. LockError::withdrawn, mismatch.
  [[nodiscard]] LockResult<std::shared_ptr<MutexWorkflow>> workflow_of(const std::string& resource,
                                                                       std::uint32_t capacity);
  void granted(TicketNumber ticket, TokenBlock tokens) override;
  void gone(TicketNumber ticket) override;

  std::unique_ptr<LockStore> store_;
  const std::string url_;
  Executor* home_ = nullptr;    // null: not open
  Nursery* nursery_ = nullptr;  // null: not open, or draining
  std::map<std::string, std::shared_ptr<MutexWorkflow>> book_;
  std::unordered_map<TicketNumber, MutexWorkflow*> owners_;
  TicketNumber next_number_ = 1;
  std::map<Place, std::shared_ptr<Joining>> joining_;
  std::size_t guests_ = 0;
  Event ending_{"the end of a lock engine"};
  Event guests_left_{"who holds the locks of an engine that ends"};
  Event empty_{"the end of a lock engine's workflows"};
  LockStatistics statistics_;
};

[[nodiscard]] Task<LockResult<std::size_t>> revoke(std::shared_ptr<EngineState> engine,
                                                   std::string resource);

}  // namespace weft::inline v0::durable::detail
