// SPDX-License-Identifier: MIT
#pragma once
// weft::Semaphore: so many permits, also across loops. Waiting suspends the task, never the thread.
//
//     Semaphore connections(100, "connections");
//     {
//       auto permit = co_await connections.acquire();   // given back at the end of the block
//       co_await serve(client);
//     }
//     Semaphore memory(64 << 20, "frame memory");
//     auto share = co_await memory.acquire(frame.size());
//
// First come, first served, also for requests of different size: a large one that waits at the
// front is not overtaken by a small one that could be served, and is not starved by it. For one
// task at a time use Mutex, which knows its owner; for a signal, AutoEvent.
//
// A permit belongs to nobody: it may travel, and any thread may give it back, also one without a
// loop.
//
// Threads        acquire(): on a loop. Everything else: any thread. Tasks of many loops may share
//                one.
// Cancellation   an acquire() that waits is unlinked and takes nothing; those behind it who can go
//                now, go. One that has just been given its permits and has not gone on yet gives
//                them back, to the next, and ends cancelled. One that has gone on has them, and its
//                permit gives them back.
// Resumption     on the loop that awaited, through its ready ring; never inside of release().
// Memory order   what happens before release() is visible to who acquires those permits.
// Errors         UsageError: acquire() of none, or of more than max(); release() to more than
//                max(); acquire() off any loop.
// Allocation     none.
// Cost           without waiters: one compare-exchange to acquire, one to release. release() is
//                O(tasks that it serves).
#include <cstdint>
#include <optional>
#include <utility>

#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/semaphore_core.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

class Semaphore;

// Some permits, and the duty to give them back. Empty when it was moved from or released.
class [[nodiscard]] SemaphorePermit {
 public:
  using Count = std::uint32_t;

  SemaphorePermit() = default;
  SemaphorePermit(SemaphorePermit&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  SemaphorePermit& operator=(SemaphorePermit&& other) noexcept {
    if (this != &other) {
      release();
      semaphore_ = std::exchange(other.semaphore_, nullptr);
      count_ = std::exchange(other.count_, 0);
    }
    return *this;
  }
  ~SemaphorePermit() { release(); }

  // Before the end of the block. Any thread. Without effect if it is empty.
  inline void release() noexcept;
  [[nodiscard]] Count count() const noexcept { return count_; }
  explicit operator bool() const noexcept { return semaphore_ != nullptr; }

 private:
  friend class Semaphore;
  SemaphorePermit(Semaphore& semaphore, Count count) noexcept
      : semaphore_(&semaphore), count_(count) {}

  Semaphore* semaphore_ = nullptr;
  Count count_ = 0;
};

class Semaphore {
  class Wait;
  class Acquire;
  class AcquireRaw;

 public:
  using Count = detail::SemaphoreCore::Count;
  using Limits = detail::SemaphoreCore::Limits;
  using Permit = SemaphorePermit;

  // So many permits, all free. The name is shown in the task tree and in messages. Requires: it
  // outlives the Semaphore. UsageError if there can never be one.
  explicit Semaphore(Count permits, const char* name = nullptr)
      : Semaphore(Limits{permits, permits}, name) {}
  // Fewer to begin with than there may be: release() adds the others. UsageError if it is not so.
  explicit Semaphore(Limits limits, const char* name = nullptr);
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  // Requires: nobody waits for it, nobody has a permit. Ends the process if somebody waits.
  ~Semaphore();

  // Returns: an awaitable of a Permit for all of `count` at once.
  [[nodiscard]] auto acquire(Count count = 1) {
    require_possible(count);
    return AwaiterDescription<detail::SyncAwaiter<Acquire>, Semaphore&, Count>(*this,
                                                                               std::move(count));
  }
  // The same without a Permit: the caller calls release(), on every way out.
  [[nodiscard]] auto acquire_raw(Count count = 1) {
    require_possible(count);
    return AwaiterDescription<detail::SyncAwaiter<AcquireRaw>, Semaphore&, Count>(*this,
                                                                                  std::move(count));
  }
  // Returns: a permit; nothing if fewer are free, or if somebody waits.
  [[nodiscard]] std::optional<Permit> try_acquire(Count count = 1) {
    require_possible(count);
    if (!core_.try_take(count)) return std::nullopt;
    return Permit(*this, count);
  }

  // Gives back what was acquired without a Permit, or adds to what there was at the start.
  void release(Count count = 1) {
    if (!give(count)) [[unlikely]]
      refuse_release(count);
  }

  // A moment's truth, like is_locked().
  [[nodiscard]] Count available() const noexcept { return core_.free(); }
  [[nodiscard]] Count max() const noexcept { return core_.max(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  friend class SemaphorePermit;

  bool give(Count count) noexcept {
    detail::WaitList served;
    if (!core_.give(count, served)) return false;
    detail::Waiter::notify_all(served);  // S5: *this may be gone
    return true;
  }
  void give_back(Count count) noexcept {
    if (!give(count)) [[unlikely]]
      abort_released_twice();
  }
  void require_possible(Count count) const {
    if (count == 0 || count > max()) [[unlikely]]
      refuse_acquire(count);
  }
  [[noreturn]] void refuse_acquire(Count count) const;
  [[noreturn]] void refuse_release(Count count) const;
  [[noreturn]] void abort_released_twice() const noexcept;
  void describe_wait(TaskTreeCollector& tree, const detail::WaitNode& waiter);

  detail::SemaphoreCore core_;
  const char* name_;
};

class Semaphore::Wait : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "Semaphore::acquire()";

 protected:
  Wait(Semaphore& semaphore, Count count) noexcept : semaphore_(semaphore) { amount = count; }

  bool take() noexcept { return semaphore_.core_.try_take(amount); }
  bool take_or_wait() noexcept { return semaphore_.core_.take_or_wait(*this); }
  detail::Withdrawn withdraw() noexcept {
    detail::WaitList served;
    const detail::Withdrawn how = semaphore_.core_.withdraw(*this, served);
    notify_all(served);
    if (how == detail::Withdrawn::passed_on) give_back();
    return how;
  }
  void give_back() noexcept { semaphore_.give_back(amount); }
  void introspect(TaskTreeCollector& tree) { semaphore_.describe_wait(tree, *this); }

  Semaphore& semaphore_;
};

class Semaphore::Acquire : public Wait {
 protected:
  using Wait::Wait;
  Permit result() noexcept { return Permit(semaphore_, amount); }
};

class Semaphore::AcquireRaw : public Wait {
 protected:
  using Wait::Wait;
  void result() noexcept {}
};

inline void SemaphorePermit::release() noexcept {
  if (Semaphore* semaphore = std::exchange(semaphore_, nullptr))
    semaphore->give_back(std::exchange(count_, 0));
}

}  // namespace weft::inline v0
