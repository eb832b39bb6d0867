// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::Mutex: one task at a time, among all processes that use the same store. Semaphore: N of them.
//
//     durable::MutexOptions options{.resource_id = "orders/42"};
//     auto lock = co_await durable::Mutex::open(engine, options);
//     if (!lock) …                                              // LockError: bad options, store not reachable
//
//     auto sum = co_await lock->on_acquire([&](durable::LockContext& held) -> Task<int> {
//       co_return co_await settle(order, held.fencing_token());
//     });                                                       // expected<int, LockError>
//
// on_acquire() waits for the lock, runs the function, and gives the lock back: whether the function returns, throws or is
// cancelled, or the lock is lost, and after every task that it started has ended. There is no other way to hold one.
//
// A lease without a checked token is advice: a process may be paused for longer than its lease and go on writing. Give the
// token to what you protect, and have it refuse smaller ones (fence_gate.h).
//
// If the lock is lost (the store could not be reached to renew it, somebody revoked it, it was held for longer than max_hold)
// the function is cancelled, and the result is LockError::lost, even if the function returned all the same. What the function
// throws always passes through. That a release failed is logged, and the result is the function's: the lease ends it.
//
// Tasks of one process that wait for the same resource pass the lock on among themselves, without asking the store, up to
// fair_bound times; then other processes have their turn. First come, first served, among processes, and among the tasks of
// one that want the same: readers, writers, and those with another lease queue apart, and between them it is the store's
// queue that decides, once in fair_bound times.
//
// A task that waits for what it holds waits until acquire_timeout.
//
// Threads        any loop; the function runs on the caller's. Handles are copied freely. After the end of their Engine, while its
//                loop is there, they say LockError::withdrawn.
// Cancellation   while it waits: withdrawn at once, also if the grant is under way. While the function runs: passed to it. The
//                release is shielded.
// Errors         LockError. LoopStopped, if the engine's loop has been stopped.
// Allocation     some blocks per acquisition.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/core/combinators.h"
#include "weft/core/invoked.h"
#include "weft/core/task.h"
#include "weft/core/try.h"
#include "weft/durable/acquisition.h"
#include "weft/durable/engine.h"
#include "weft/durable/lock_context.h"
#include "weft/durable/lock_error.h"

namespace weft::inline v0::durable {

// (Name the options before they enter a co_await expression: g++ 12 destroys them twice there.)
struct MutexOptions {
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kNever = Duration::max();

  std::string resource_id{};                  // 1 to kResourceIdMax bytes, of any kind but NUL
  Duration lease = std::chrono::seconds(15);  // how long others wait for a holder that has died
  Duration acquire_timeout = std::chrono::seconds(30);  // kNever: none
  Duration max_hold = std::chrono::minutes(10);         // kNever: renewed for as long as it takes
  Duration idle_timeout = std::chrono::minutes(1);  // after which an unused resource is forgotten
  std::uint32_t fair_bound = 64;  // acquisitions in this process before others have their turn
  std::string
      owner{};  // shown to people who ask who holds it; empty: host, program and process id.
                // At most kOwnerBytesMax bytes, none of them a control character: as_owner()

  static constexpr std::size_t kResourceIdMax = 512;
  static constexpr std::size_t kOwnerBytesMax = 256;
  static constexpr Duration kLeaseMin = std::chrono::milliseconds(10);
  static constexpr Duration kLeaseMax = std::chrono::hours(24);
  static constexpr std::uint32_t kFairBoundMax = 1u << 16;
};

// Any text made fit for MutexOptions::owner: cut, and with '?' for control characters.
[[nodiscard]] std::string as_owner(std::string text);

struct SemaphoreOptions : MutexOptions {
  std::uint32_t permits = 1;  // the same in every process
};

// What a function under a lock returns, of its Task.
template <class Fn, class... Args>
using UnderLock = typename std::invoke_result_t<std::decay_t<Fn>&, Args...>::value_type;

namespace detail {

template <class T, class Fn, class... Args>
Task<void> run_section(Slot<T>& slot, Fn& fn, Args&... args) {
  if constexpr (std::is_void_v<T>) {
    co_await std::invoke(fn, args...);
  } else {
    slot.value.emplace(co_await std::invoke(fn, args...));
  }
  slot.is_set = true;
}

template <class Fn>
Task<LockResult<UnderLock<Fn, LockContext&>>> run_under(LockOrder order, Fn fn) {
  using T = UnderLock<Fn, LockContext&>;
  Acquisition lock(std::move(order));
  Slot<T> slot;
  Section section = [&]() { return run_section<T>(slot, fn, lock.context()); };
  Section scoped = [&]() { return run_in_scope(std::span(&lock, 1), section); };
  co_await lock.hold(scoped);
  if (lock.error()) co_return std::unexpected(*lock.error());
  if (!slot.is_set) co_await end_cancelled();
  co_return slot.take();
}

template <class Fn>
Task<LockResult<UnderLock<Fn, std::vector<LockContext>&>>> run_under_all(
    std::vector<LockOrder> orders, std::optional<std::chrono::nanoseconds> timeout, Fn fn) {
  using T = UnderLock<Fn, std::vector<LockContext>&>;
  LockResult<std::vector<Acquisition>> locks = in_order(std::move(orders));
  if (!locks) co_return std::unexpected(locks.error());
  if (timeout && *timeout < TimePoint::max() - now()) {
    for (Acquisition& lock : *locks) lock.set_deadline(now() + *timeout);
  }
  std::vector<LockContext> contexts;
  for (Acquisition& lock : *locks) contexts.push_back(lock.context());
  Slot<T> slot;
  Section section = [&]() { return run_section<T>(slot, fn, contexts); };
  co_await hold_all(*locks, section);
  if (std::optional<LockError> error = first_error(*locks)) co_return std::unexpected(*error);
  if (!slot.is_set) co_await end_cancelled();
  co_return slot.take();
}

}  // namespace detail

class Mutex {
 public:
  // Checks the options, and that the store answers, within acquire_timeout and the store's own bound, and has, or now has, the
  // resource.
  static Task<LockResult<Mutex>> open(Engine& engine, MutexOptions options);

  // fn: a coroutine function of a LockContext&. Returns: Task<LockResult<T>>, where fn returns Task<T>.
  template <class Fn>
  [[nodiscard]] auto on_acquire(Fn&& fn) const {
    return run(order(detail::kWhole, options_->acquire_timeout), std::forward<Fn>(fn));
  }
  // With another acquire_timeout.
  template <class Fn>
  [[nodiscard]] auto on_acquire_within(MutexOptions::Duration timeout, Fn&& fn) const {
    return run(order(detail::kWhole, timeout), std::forward<Fn>(fn));
  }
  // LockError::busy instead of waiting for somebody else.
  template <class Fn>
  [[nodiscard]] auto try_acquire(Fn&& fn) const {
    return run(only_if_free(order(detail::kWhole, options_->acquire_timeout)),
               std::forward<Fn>(fn));
  }

  // Together with others that say so, and with nobody who does not.
  template <class Fn>
  [[nodiscard]] auto on_acquire_shared(Fn&& fn) const {
    return run(order(1, options_->acquire_timeout), std::forward<Fn>(fn));
  }
  template <class Fn>
  [[nodiscard]] auto on_acquire_shared_within(MutexOptions::Duration timeout, Fn&& fn) const {
    return run(order(1, timeout), std::forward<Fn>(fn));
  }
  template <class Fn>
  [[nodiscard]] auto try_acquire_shared(Fn&& fn) const {
    return run(only_if_free(order(1, options_->acquire_timeout)), std::forward<Fn>(fn));
  }

  // Engine::revoke() of this resource.
  Task<LockResult<std::size_t>> force_kill() const;

  [[nodiscard]] const std::string& resource_id() const noexcept { return options_->resource_id; }
  [[nodiscard]] const MutexOptions& options() const noexcept { return *options_; }

 private:
  template <class Fn>
  friend auto on_acquire_all(const std::vector<Mutex>& locks, Fn&& fn);
  template <class Fn>
  friend auto on_acquire_all_within(MutexOptions::Duration timeout, const std::vector<Mutex>& locks,
                                    Fn&& fn);
  template <class Fn>
  friend auto try_acquire_all(const std::vector<Mutex>& locks, Fn&& fn);

  Mutex(std::shared_ptr<detail::EngineState> engine, MutexOptions options);
  [[nodiscard]] detail::LockOrder order(std::uint32_t weight,
                                        MutexOptions::Duration timeout) const {
    return {engine_, options_, weight, detail::kWhole, timeout};
  }
  [[nodiscard]] static detail::LockOrder only_if_free(detail::LockOrder order) {
    order.only_if_free = true;
    return order;
  }
  template <class Fn>
  static auto run(detail::LockOrder order, Fn&& fn) {
    ::weft::detail::check_callable<Fn>();
    return detail::run_under<std::decay_t<Fn>>(std::move(order), std::forward<Fn>(fn));
  }

  std::shared_ptr<detail::EngineState> engine_;
  std::shared_ptr<const MutexOptions> options_;
};

// All of them at once: fn is a coroutine function of a std::vector<LockContext>&, in the order of the resources' names (then of
// their engines' URLs), which is the order in which they are acquired, here and everywhere: nobody waits in a circle. If
// one is lost, fn is cancelled. Each has its own acquire_timeout. LockError::invalid if there is none, or one twice.
template <class Fn>
[[nodiscard]] auto on_acquire_all(const std::vector<Mutex>& locks, Fn&& fn) {
  ::weft::detail::check_callable<Fn>();
  std::vector<detail::LockOrder> orders;
  for (const Mutex& lock : locks)
    orders.push_back(lock.order(detail::kWhole, lock.options().acquire_timeout));
  return detail::run_under_all<std::decay_t<Fn>>(std::move(orders), std::nullopt,
                                                 std::forward<Fn>(fn));
}
// With one timeout, for all of them together.
template <class Fn>
[[nodiscard]] auto on_acquire_all_within(MutexOptions::Duration timeout,
                                         const std::vector<Mutex>& locks, Fn&& fn) {
  ::weft::detail::check_callable<Fn>();
  std::vector<detail::LockOrder> orders;
  for (const Mutex& lock : locks) orders.push_back(lock.order(detail::kWhole, timeout));
  return detail::run_under_all<std::decay_t<Fn>>(std::move(orders), timeout, std::forward<Fn>(fn));
}
// All of them, or LockError::busy and none.
template <class Fn>
[[nodiscard]] auto try_acquire_all(const std::vector<Mutex>& locks, Fn&& fn) {
  ::weft::detail::check_callable<Fn>();
  std::vector<detail::LockOrder> orders;
  for (const Mutex& lock : locks) {
    orders.push_back(
        Mutex::only_if_free(lock.order(detail::kWhole, lock.options().acquire_timeout)));
  }
  return detail::run_under_all<std::decay_t<Fn>>(std::move(orders), std::nullopt,
                                                 std::forward<Fn>(fn));
}

class Semaphore {
 public:
  // As Mutex::open(); LockError::mismatch if others use the resource with another number of permits.
  static Task<LockResult<Semaphore>> open(Engine& engine, SemaphoreOptions options);

  // Takes one permit while fn runs.
  template <class Fn>
  [[nodiscard]] auto on_acquire(Fn&& fn) const {
    return run(options_->acquire_timeout, false, std::forward<Fn>(fn));
  }
  template <class Fn>
  [[nodiscard]] auto on_acquire_within(MutexOptions::Duration timeout, Fn&& fn) const {
    return run(timeout, false, std::forward<Fn>(fn));
  }
  template <class Fn>
  [[nodiscard]] auto try_acquire(Fn&& fn) const {
    return run(options_->acquire_timeout, true, std::forward<Fn>(fn));
  }
  // Engine::revoke() of this resource: whoever has a permit loses it.
  Task<LockResult<std::size_t>> force_kill() const;

  [[nodiscard]] const std::string& resource_id() const noexcept { return options_->resource_id; }
  [[nodiscard]] std::uint32_t permits() const noexcept { return permits_; }

 private:
  Semaphore(std::shared_ptr<detail::EngineState> engine, SemaphoreOptions options);
  template <class Fn>
  auto run(MutexOptions::Duration timeout, bool only_if_free, Fn&& fn) const {
    ::weft::detail::check_callable<Fn>();
    detail::LockOrder order{engine_, options_, 1, permits_, timeout, only_if_free};
    return detail::run_under<std::decay_t<Fn>>(std::move(order), std::forward<Fn>(fn));
  }

  std::shared_ptr<detail::EngineState> engine_;
  std::shared_ptr<const MutexOptions> options_;
  std::uint32_t permits_;
};

}  // namespace weft::inline v0::durable
