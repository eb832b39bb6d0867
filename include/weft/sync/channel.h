// SPDX-License-Identifier: MIT
#pragma once
// weft::Channel<T>: values from many tasks to many tasks, also across loops.
//
//     Channel<Job> jobs(64);
//     if (!co_await jobs.send(std::move(job))) keep(job);      // closed: the job is still here
//     while (auto job = co_await jobs.receive()) work(*job);   // until closed and drained
//
// Each value goes to one receiver, in the order in which they were sent; those who wait are served in the
// order of their coming. Capacity 0 is a rendezvous: a send ends when a receiver has taken the value.
// For one value use Oneshot; for all of them to everyone, Broadcast; for the latest, Watch.
//
// What a send is given stays its caller's until it is taken: send() keeps a reference, and moves from
// it when there is room. After a send that ended with "closed", or was cancelled, the object is as it
// was; one whose value was taken has sent it, and cancellation strikes at the next await.
//
// After close() nothing gets in: whoever waits to send ends with "closed", and receivers get what is
// inside and then "closed".
//
// Threads        try_send(), try_receive(), close(): any thread, also without a loop. send() and
//                receive(): on a loop. All of them concurrently.
// Cancellation   a wait takes nothing and leaves nothing. One whose value was taken, or that was given
//                a value, and has not gone on yet, keeps its result and goes on (L5).
// Resumption     on the loop that awaited, through its ready ring; never inside of the call that woke
//                it. Who has been woken is not woken again for what comes meanwhile.
// Errors         "closed" is a value, false or nothing, and no std::expected: combinators let an error
//                beat values, and any_of(a.receive(), b.receive()) must not lose an item of b
//                because a was closed. UsageError off any loop; std::bad_alloc from send() where
//                unbounded() needs memory, and from receive_up_to() before it takes something.
// Allocation     the ring, when it is made; unbounded(): chunks; receive_up_to(): its vector. No wait
//                allocates.
// Cost           one short lock each, of the end that it uses, and a wake-up only if someone waits.
//                Between loops that send and receive side by side an end that finds little pauses for
//                up to a microsecond, so that both go on by many items at a time.
//
// T moves without throwing. Its moves run inside of the channel's lock and must not use the channel.
// A result that nobody takes, because another branch of a combinator threw, dies with that branch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/channel_core.h"
#include "weft/sync/sharing.h"
#include "weft/sync/sync_awaitable.h"
#include "weft/sync/wait_report.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

// Why try_send() or try_receive() did nothing.
enum class ChannelError : std::uint8_t {
  closed,  // and, for a receiver, drained
  full,
  empty,
};

// Sharing says whether it is for many loops or, as LocalChannel<T>, for one.
template <class T, class Sharing = detail::BetweenLoops>
class Channel {
  using Core = detail::ChannelCore<T, Sharing, detail::Waiter>;
  class Send;
  class SendOne;
  class ReceiveWait;
  class Receive;
  class ReceiveUpTo;
  template <class Wait, class... Args>
  using Awaitable = detail::SyncAwaitable<Wait, Channel&, Args...>;

 public:
  // How much an unbounded() channel holds, unless it is told otherwise: then senders wait.
  static constexpr std::size_t kUnboundedMax = std::size_t{1} << 20;

  // The name is shown in the task tree and in messages. Requires: it outlives the channel.
  explicit Channel(std::size_t capacity, const char* name = nullptr)
      : core_(capacity), name_(name) {}
  // Takes memory as it fills, and gives it back.
  [[nodiscard]] static Channel unbounded(const char* name = nullptr,
                                         std::size_t items_max = kUnboundedMax) {
    return Channel(typename detail::ItemQueue<T, Sharing>::Growing{items_max, kChunkItems}, name);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // Requires: nobody waits for it. Ends the process if somebody does.
  ~Channel() {
    if (core_.is_awaited()) [[unlikely]]
      detail::abort_awaited({kKind, name_});
  }

  // Requires: `value` lives until the wait has ended; a temporary in the co_await expression does.
  // Returns:  an awaitable of bool: false if the channel is closed.
  // Cancel:   the value was not moved from.
  [[nodiscard]] auto send(T&& value) noexcept {
    return Awaitable<SendOne, T&&>(*this, std::move(value));
  }
  // All of them, in order; other senders' values may come between. Each that is taken leaves `rest`.
  // Requires: `rest` and the values live until the wait has ended.
  // Returns:  an awaitable of bool: false if the channel was closed before the last was taken.
  // Cancel:   `rest` is what was not moved from.
  [[nodiscard]] auto send_all(std::span<T>& rest) noexcept {
    return Awaitable<Send, std::span<T>&>(*this, rest);
  }
  // Returns: nothing, or full or closed: then the value was not moved from. Throws: std::bad_alloc, as well.
  Result<void, ChannelError> try_send(T&& value) {
    if (core_.try_push(std::move(value), here("LocalChannel::try_send()"))) return {};
    std::span<T> values(&value, 1);
    detail::WaitList woken;
    const typename Core::Sent how = core_.send(values, woken);
    detail::Waiter::notify_all(woken);
    if (was_sent(how)) return {};
    return std::unexpected(how == Core::Sent::full ? ChannelError::full : ChannelError::closed);
  }

  // Returns: an awaitable of std::optional<T>: nothing if the channel is closed and drained.
  [[nodiscard]] auto receive() noexcept { return Awaitable<Receive>(*this); }
  // Waits for one, and takes up to count_max that are there when it goes on.
  // Requires: count_max > 0.
  // Returns:  an awaitable of std::vector<T>: empty if the channel is closed and drained.
  [[nodiscard]] auto receive_up_to(std::size_t count_max) noexcept {
    return Awaitable<ReceiveUpTo, std::size_t>(*this, std::move(count_max));
  }
  // Returns: a value, or empty or closed.
  [[nodiscard]] Result<T, ChannelError> try_receive() noexcept {
    std::optional<T> item;
    if (core_.try_pop(item, here("LocalChannel::try_receive()"))) return std::move(*item);
    detail::WaitList woken;
    const typename Core::Received how = core_.receive(item, woken);
    detail::Waiter::notify_all(woken);
    if (how == Core::Received::item) return std::move(*item);
    return std::unexpected(how == Core::Received::empty ? ChannelError::empty
                                                        : ChannelError::closed);
  }

  // Without effect if it is closed.
  void close() noexcept {
    if constexpr (Sharing::kIsLocal) here("LocalChannel::close()");
    detail::WaitList woken;
    core_.close(woken);
    detail::Waiter::notify_all(woken);
  }

  // As of some moment during the call.
  [[nodiscard]] bool is_closed() const noexcept { return core_.is_closed(); }
  [[nodiscard]] std::size_t size() const noexcept { return core_.size(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return core_.capacity(); }
  [[nodiscard]] const char* name() const noexcept { return name_; }

 private:
  static constexpr const char* kKind = Sharing::kIsLocal ? "LocalChannel" : "Channel";
  static constexpr std::size_t kChunkBytes = 4096;
  static constexpr std::size_t kChunkItems = std::max<std::size_t>(16, kChunkBytes / sizeof(T));

  Channel(typename detail::ItemQueue<T, Sharing>::Growing how, const char* name)
      : core_(how), name_(name) {}

  // Returns: the loop that calls, or 0. Only a LocalChannel can complain of it.
  detail::HomeIndex here(const char* what) noexcept {
    const Executor* loop = detail::thread_state().executor;
    const detail::HomeIndex home = loop ? loop->home() : 0;
    bond_.require(home, what);
    return home;
  }
  static bool was_sent(typename Core::Sent how) {
    if (how == Core::Sent::no_memory) throw std::bad_alloc();
    return how == Core::Sent::all;
  }
  void describe(TaskTreeCollector& tree, const char* what, const auto& node) {
    detail::describe_wait(tree, {kKind, name_, what}, core_.place_of(node));
  }

  Core core_;
  const char* name_;
  [[no_unique_address]] typename Sharing::LoopBond bond_;
};

template <class T, class Sharing>
class Channel<T, Sharing>::Send : public Core::SendNode {
 public:
  static constexpr const char* kWhat =
      Sharing::kIsLocal ? "LocalChannel::send()" : "Channel::send()";

 protected:
  Send(Channel& channel, std::span<T>& rest) noexcept : channel_(channel) { this->values = &rest; }

  bool take() noexcept {
    channel_.bond_.require(this->home, kWhat);
    detail::WaitList woken;
    how_ = channel_.core_.send(*this->values, woken);
    detail::Waiter::notify_all(woken);
    return how_ != Core::Sent::full;
  }
  bool take_or_wait() noexcept {
    detail::WaitList woken;
    how_ = channel_.core_.send_or_wait(*this, woken);
    detail::Waiter::notify_all(woken);
    return how_ != Core::Sent::full;
  }
  detail::Withdrawn withdraw() noexcept { return channel_.core_.withdraw(*this); }
  bool result() { return was_sent(how_ == Core::Sent::full ? Core::sent_by(*this) : how_); }
  void give_back() noexcept {}  // it was sent
  void introspect(TaskTreeCollector& tree) { channel_.describe(tree, "send", *this); }

 private:
  Channel& channel_;
  typename Core::Sent how_ = Core::Sent::full;  // full: it had to wait
};

template <class T, class Sharing>
class Channel<T, Sharing>::SendOne : public Send {
 public:
  using Now = bool;
  static bool take_now(detail::Strand& task, bool& sent, Channel& channel, T& value) noexcept {
    const detail::HomeIndex home = task.home.load(detail::relaxed);
    channel.bond_.require(home, Send::kWhat);
    return sent = channel.core_.try_push(std::move(value), home);
  }

 protected:
  SendOne(Channel& channel, T&& value) noexcept : Send(channel, value_), value_(&value, 1) {}

 private:
  std::span<T> value_;
};

template <class T, class Sharing>
class Channel<T, Sharing>::ReceiveWait : public Core::ReceiveNode {
 public:
  static constexpr const char* kWhat =
      Sharing::kIsLocal ? "LocalChannel::receive()" : "Channel::receive()";

 protected:
  explicit ReceiveWait(Channel& channel) noexcept : channel_(channel) {}

  bool take() noexcept {
    channel_.bond_.require(this->home, kWhat);
    detail::WaitList woken;
    const typename Core::Received how = channel_.core_.receive(this->item, woken);
    detail::Waiter::notify_all(woken);
    return how != Core::Received::empty;
  }
  bool take_or_wait() noexcept {
    detail::WaitList woken;
    const typename Core::Received how = channel_.core_.receive_or_wait(*this, woken);
    detail::Waiter::notify_all(woken);
    return how != Core::Received::empty;
  }
  detail::Withdrawn withdraw() noexcept { return channel_.core_.withdraw(*this); }
  void give_back() noexcept {}  // the item dies with the branch
  void introspect(TaskTreeCollector& tree) { channel_.describe(tree, "receive", *this); }

  Channel& channel_;
};

template <class T, class Sharing>
class Channel<T, Sharing>::Receive : public ReceiveWait {
 public:
  using Now = std::optional<T>;
  static bool take_now(detail::Strand& task, Now& item, Channel& channel) noexcept {
    const detail::HomeIndex home = task.home.load(detail::relaxed);
    channel.bond_.require(home, ReceiveWait::kWhat);
    return channel.core_.try_pop(item, home);
  }

 protected:
  using ReceiveWait::ReceiveWait;
  std::optional<T> result() noexcept { return std::move(this->item); }
};

template <class T, class Sharing>
class Channel<T, Sharing>::ReceiveUpTo : public ReceiveWait {
 protected:
  ReceiveUpTo(Channel& channel, std::size_t count_max) noexcept
      : ReceiveWait(channel), count_max_(count_max) {}

  // There is room for one before one is taken: else it would be lost where there is no memory.
  bool take() {
    items_.reserve(std::max<std::size_t>(1, std::min(count_max_, this->channel_.size())));
    return ReceiveWait::take();
  }
  std::vector<T> result() noexcept {
    if (!this->item) return {};
    Core& core = this->channel_.core_;
    const std::size_t count = room_for(std::min(count_max_, 1 + core.size()));
    items_.push_back(std::move(*this->item));
    detail::WaitList woken;
    core.receive_some(items_, count, woken);
    detail::Waiter::notify_all(woken);
    return std::move(items_);
  }

 private:
  // Returns: what there is room for, of so many; fewer will do.
  std::size_t room_for(std::size_t count) noexcept {
    try {
      items_.reserve(count);
    } catch (const std::bad_alloc&) {
    }
    return std::min(count, items_.capacity());
  }

  const std::size_t count_max_;
  std::vector<T> items_;
};

}  // namespace weft::inline v0
