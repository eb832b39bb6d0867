// SPDX-License-Identifier: MIT
#pragma once
// weft::Broadcast<T>: every value to every subscriber, also across loops.
//
//     Broadcast<Event> events(1024);
//     auto subscriber = events.subscribe();                    // sees what is sent from here on
//     events.send(event);                                      // from any thread; never waits
//     while (auto next = co_await subscriber.receive()) {      // until closed and read to the end
//       if (next->missed > 0) resynchronise(next->missed);     // it was too slow
//       show(*next->value);
//     }
//
// The last `capacity` values are kept. A subscriber that is further behind goes on with the oldest
// that is kept, and is told with it how many it missed: a slow one never holds up the others. For values
// that must not be missed use Channel; for the latest alone, Watch.
//
// Threads        subscribe(), send(), close(): any thread, also without a loop, concurrently. A
//                subscriber is one task's at a time.
// Cancellation   a wait takes nothing: also one that has been told ends cancelled, and the next
//                receive() has the value.
// Resumption     on the loop that awaited, through its ready ring; never inside of send(). Who has been
//                told is not told again for what comes meanwhile.
// Errors         none of its own: lag and the end are values. UsageError off any loop.
// Allocation     the ring, when it is made; one block per value, which all subscribers share. None
//                per wait, none per subscriber.
// Cost           one short lock each. Nothing of T's runs inside of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/news_core.h"
#include "weft/sync/wait_report.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

template <class T>
class BroadcastSubscriber;

template <class T>
class Broadcast {
 public:
  struct Item {
    std::shared_ptr<const T> value;
    std::uint64_t missed;  // values between this one and the last that the subscriber saw
  };

  // The name is shown in the task tree and in messages. Requires: capacity > 0; it outlives this.
  explicit Broadcast(std::size_t capacity, const char* name = nullptr)
      : core_(0), ring_(std::max<std::size_t>(capacity, 1)), name_(name) {}
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;
  // Requires: nobody waits for it, and subscribers are not used any more. Ends the process if somebody
  // waits.
  ~Broadcast() {
    if (core_.has_waiters()) [[unlikely]]
      detail::abort_awaited({"Broadcast", name_});
  }

  [[nodiscard]] BroadcastSubscriber<T> subscribe() noexcept {
    return core_.look([&](std::uint64_t sent) { return BroadcastSubscriber<T>(*this, sent); });
  }
  // Returns: false if it is closed; then nobody gets the value.
  bool send(T value) {
    auto shared = std::make_shared<const T>(std::move(value));  // then the one that it replaces
    auto change = [&](std::uint64_t sent) {
      slot(sent).swap(shared);
      return true;
    };
    detail::WaitList woken;
    const bool sent = core_.publish(change, woken);
    detail::Waiter::notify_all(woken);
    return sent;
  }
  // Subscribers get what they have not seen, then nothing. Without effect if it is closed.
  void close() noexcept {
    detail::WaitList woken;
    core_.close(woken);
    detail::Waiter::notify_all(woken);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return ring_.size(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  friend class BroadcastSubscriber<T>;

  std::shared_ptr<const T>& slot(std::uint64_t number) noexcept {
    return ring_[static_cast<std::size_t>(number % ring_.size())];
  }

  detail::NewsCore core_;  // its count is of all that were sent
  // Guarded by the core. Number n is in slot(n) until number n + capacity() comes.
  std::vector<std::shared_ptr<const T>> ring_;
  const char* name_;
};

// A place in the stream. A copy goes on from the same place, on its own.
template <class T>
class BroadcastSubscriber {
  class Receive;

 public:
  using Item = typename Broadcast<T>::Item;

  // Requires: it is neither moved nor destroyed while the wait lasts; one wait at a time.
  // Returns:  an awaitable of std::optional<Item>: nothing if it is closed and read to the end.
  [[nodiscard]] auto receive() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Receive>, BroadcastSubscriber&>(*this);
  }
  // Returns: nothing if there is none now.
  [[nodiscard]] std::optional<Item> try_receive() noexcept {
    return broadcast_->core_.look([&](std::uint64_t sent) { return next_of(sent); });
  }

 private:
  friend class Broadcast<T>;
  BroadcastSubscriber(Broadcast<T>& broadcast, std::uint64_t next) noexcept
      : broadcast_(&broadcast), next_(next) {}

  // Requires: the lock of the core, which says `sent`.
  std::optional<Item> next_of(std::uint64_t sent) noexcept {
    if (next_ == sent) return std::nullopt;
    const std::uint64_t oldest = sent - std::min<std::uint64_t>(sent, broadcast_->capacity());
    const std::uint64_t missed = oldest > next_ ? oldest - next_ : 0;
    next_ += missed;
    return Item{broadcast_->slot(next_++), missed};
  }

  Broadcast<T>* broadcast_;
  std::uint64_t next_;  // the number of the value that it sees next
};

template <class T>
class BroadcastSubscriber<T>::Receive : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "BroadcastSubscriber::receive()";

 protected:
  explicit Receive(BroadcastSubscriber& subscriber) noexcept : subscriber_(subscriber) {}

  bool take() noexcept { return core().has_news(subscriber_.next_); }
  bool take_or_wait() noexcept { return core().look_or_wait(*this, subscriber_.next_); }
  detail::Withdrawn withdraw() noexcept { return core().withdraw(*this); }
  std::optional<Item> result() noexcept { return subscriber_.try_receive(); }
  void give_back() noexcept {}  // it took nothing
  void introspect(TaskTreeCollector& tree) {
    detail::describe_wait(tree, {"Broadcast", subscriber_.broadcast_->name_, "receive"},
                          core().place_of(*this));
  }

 private:
  detail::NewsCore& core() noexcept { return subscriber_.broadcast_->core_; }

  BroadcastSubscriber& subscriber_;
};

}  // namespace weft::inline v0
