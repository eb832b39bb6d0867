// SPDX-License-Identifier: MIT
#pragma once
// weft::Watch<T>: the latest value of something, for whoever wants to see it or wait until it
// changes, also across loops.
//
//     Watch<Config> config(load());
//     config.set(load());                                          // from any thread
//     for (auto seen = config.get();; seen = co_await config.until_changed(seen)) apply(*seen);
//     co_await config.until_matches([](const Config& c) { return c.ready; });
//
// Values in between may never be seen: for all of them use Broadcast; for one taker each, Channel.
//
// A value is made once and shared; it does not change, and lives as long as somebody holds it.
// Every set() gives it a version of its own. until_changed(seen) looks and waits in one step, so a
// set() between get() and the wait is not missed.
//
// Threads        get(), set(), modify(): any thread, also without a loop. until_…(): on a loop. All of
//                them concurrently.
// Cancellation   a wait takes nothing, so there is nothing to lose: also one that has been told ends
//                cancelled.
// Resumption     on the loop that awaited, through its ready ring; never inside of set(). Who has been
//                told is not told again for what comes meanwhile, and sees the latest.
// Errors         UsageError off any loop. What a predicate or a function throws passes through.
// Allocation     one block per value; until_matches(): its frame. No other wait allocates.
// Cost           get(), set(): one short lock. Nothing of T's runs inside of it.
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/core/invoked.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/task.h"
#include "weft/core/tree.h"
#include "weft/sync/news_core.h"
#include "weft/sync/wait_report.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

template <class T>
class Watch;

// One value that a Watch had, and which one that was. Never empty.
template <class T>
class WatchValue {
 public:
  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }
  // Counts the values of its Watch, from 1.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  [[nodiscard]] const std::shared_ptr<const T>& share() const noexcept { return value_; }

 private:
  friend class Watch<T>;
  WatchValue(std::shared_ptr<const T> value, std::uint64_t version) noexcept
      : value_(std::move(value)), version_(version) {}

  std::shared_ptr<const T> value_;
  std::uint64_t version_;
};

template <class T>
class Watch {
  class Changed;

 public:
  using Value = WatchValue<T>;

  // The name is shown in the task tree and in messages. Requires: it outlives the Watch.
  explicit Watch(T initial, const char* name = nullptr)
      : core_(1), value_(std::make_shared<const T>(std::move(initial))), name_(name) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  // Requires: nobody waits for it. Ends the process if somebody does.
  ~Watch() {
    if (core_.has_waiters()) [[unlikely]]
      detail::abort_awaited({"Watch", name_});
  }

  [[nodiscard]] Value get() const noexcept {
    return core_.look([&](std::uint64_t version) { return Value(value_, version); });
  }
  // Everyone who waits is told, whether the value is another or not.
  void set(T value) { replace(std::make_shared<const T>(std::move(value)), nullptr); }
  // Calls fn(T&) with a copy, which then is the value; again with a newer one if another came first.
  // Requires: fn can be called more than once, and does not wait.
  template <class Fn>
  void modify(Fn&& fn) {
    for (Value seen = get();; seen = get()) {
      auto copy = std::make_shared<T>(*seen);
      std::invoke(fn, *copy);
      if (replace(std::move(copy), &seen)) return;
    }
  }

  // Returns: an awaitable of the latest Value, when there is a newer one than `seen`.
  [[nodiscard]] auto until_changed(const Value& seen) noexcept { return changed(seen.version()); }
  // The same since now: since this is called, not since it is awaited.
  [[nodiscard]] auto until_changed() noexcept { return changed(get().version()); }
  // The first Value, of those that are looked at, for which matches(const T&) is true; at once if that is
  // the one that is there. The predicate runs on the loop that awaits, inside of no lock.
  template <class Predicate>
  [[nodiscard]] Task<Value> until_matches(Predicate&& matches) {
    detail::check_callable<Predicate>();
    return matching<std::decay_t<Predicate>>(std::forward<Predicate>(matches));
  }

  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  auto changed(std::uint64_t since) noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Changed>, Watch&, std::uint64_t>(
        *this, std::move(since));
  }

  template <class Predicate>
  Task<Value> matching(Predicate matches) {
    Value seen = get();
    while (!std::invoke(matches, *seen)) seen = co_await until_changed(seen);
    co_return seen;
  }

  // Returns: false if it has another than `only_if` now. The old value dies outside of the lock.
  bool replace(std::shared_ptr<const T> value, const Value* only_if) noexcept {
    auto change = [&](std::uint64_t version) {
      if (only_if && only_if->version() != version) return false;
      value_.swap(value);
      return true;
    };
    detail::WaitList woken;
    const bool changed = core_.publish(change, woken);
    detail::Waiter::notify_all(woken);
    return changed;
  }

  mutable detail::NewsCore core_;   // its count is the version
  std::shared_ptr<const T> value_;  // guarded by the core
  const char* name_;
};

template <class T>
class Watch<T>::Changed : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "Watch::until_changed()";

 protected:
  Changed(Watch& watch, std::uint64_t since) noexcept : watch_(watch), since_(since) {}

  bool take() noexcept { return watch_.core_.has_news(since_); }
  bool take_or_wait() noexcept { return watch_.core_.look_or_wait(*this, since_); }
  detail::Withdrawn withdraw() noexcept { return watch_.core_.withdraw(*this); }
  Value result() noexcept { return watch_.get(); }
  void give_back() noexcept {}  // it took nothing
  void introspect(TaskTreeCollector& tree) {
    detail::describe_wait(tree, {"Watch", watch_.name_, "until changed"},
                          watch_.core_.place_of(*this));
  }

 private:
  Watch& watch_;
  const std::uint64_t since_;
};

}  // namespace weft::inline v0
