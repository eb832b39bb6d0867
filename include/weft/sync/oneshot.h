// SPDX-License-Identifier: MIT
#pragma once
// weft::oneshot<T>(): one value from one place to one task: an answer that somebody else will give.
//
//     auto [sender, receiver] = oneshot<Answer>();
//     ask(question, std::move(sender));                  // to another task, loop or thread
//     std::optional<Answer> answer = co_await receiver.receive();   // nothing: the sender was dropped
//
// The two halves share one block, and each may be dropped at any time, anywhere. For many values use
// Channel; for an answer within one loop's callbacks, until_callback().
//
// Threads        OneshotSender: any thread, also without a loop; one at a time. OneshotReceiver: on a loop;
//                one receive() at a time.
// Cancellation   a receive() that waits takes nothing, and may be repeated. One that has been told and
//                has not gone on yet goes on with the value (L5).
// Resumption     on the loop that awaited, through its ready ring; never inside of send().
// Errors         UsageError off any loop, for an empty half, or for a second receive() at a time.
// Allocation     one block for both halves; none per wait.
// Cost           one short lock each way.
//
// T moves without throwing.
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/result.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/tree.h"
#include "weft/sync/channel.h"
#include "weft/sync/oneshot_core.h"
#include "weft/sync/wait_report.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0 {

template <class T>
struct Oneshot;

// The right to send one value. Empty when it was moved from, or has sent.
template <class T>
class [[nodiscard]] OneshotSender {
  using Core = detail::OneshotCore<T>;

 public:
  OneshotSender() = default;
  OneshotSender(OneshotSender&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  OneshotSender& operator=(OneshotSender&& other) noexcept {
    if (this != &other) {
      close();
      core_ = std::exchange(other.core_, nullptr);
    }
    return *this;
  }
  ~OneshotSender() { close(); }

  // It is empty afterwards. Requires: not empty; throws UsageError if it is.
  // Returns: false if the receiver has gone; then the value was not moved from.
  bool send(T&& value) {
    if (!core_)
      detail::throw_usage_error("OneshotSender::send(): it has sent already, or was moved from");
    Core* core = std::exchange(core_, nullptr);
    return over(core, core->send(std::move(value)));
  }
  // The receiver gets nothing. Without effect if it is empty.
  void close() noexcept {
    if (Core* core = std::exchange(core_, nullptr)) over(core, core->drop_sender());
  }

  // Nobody will take the value any more: what makes it may stop. As of some moment during the call.
  [[nodiscard]] bool is_abandoned() const noexcept { return !core_ || core_->receiver_left(); }
  explicit operator bool() const noexcept { return core_ != nullptr; }

 private:
  friend struct Oneshot<T>;
  explicit OneshotSender(Core& core) noexcept : core_(&core) {}

  static bool over(Core* core, typename Core::Left left) noexcept {
    if (left.woken) detail::Waiter::from(*left.woken).notify();
    if (left.last) delete core;  // O1
    return left.sent;
  }

  Core* core_ = nullptr;
};

// The right to receive it. Empty when it was moved from.
template <class T>
class [[nodiscard]] OneshotReceiver {
  using Core = detail::OneshotCore<T>;
  class Receive;

 public:
  OneshotReceiver() = default;
  OneshotReceiver(OneshotReceiver&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  OneshotReceiver& operator=(OneshotReceiver&& other) noexcept {
    if (this != &other) {
      drop();
      core_ = std::exchange(other.core_, nullptr);
    }
    return *this;
  }
  // Requires: nobody waits for it. Ends the process if somebody does.
  ~OneshotReceiver() { drop(); }

  // Requires: it is neither moved nor destroyed while the wait lasts.
  // Returns:  an awaitable of std::optional<T>: nothing if the sender was dropped, or the value was taken.
  [[nodiscard]] auto receive() noexcept {
    return AwaiterDescription<detail::SyncAwaiter<Receive>, OneshotReceiver&>(*this);
  }
  // Returns: the value, or empty or closed.
  [[nodiscard]] Result<T, ChannelError> try_receive() {
    std::optional<T> item;
    const typename Core::Received how = core().receive(item);
    if (item) return std::move(*item);
    return std::unexpected(how == Core::Received::empty ? ChannelError::empty
                                                        : ChannelError::closed);
  }
  explicit operator bool() const noexcept { return core_ != nullptr; }

 private:
  friend struct Oneshot<T>;
  explicit OneshotReceiver(Core& core) noexcept : core_(&core) {}

  Core& core() const {
    if (!core_) detail::throw_usage_error("OneshotReceiver: it was moved from");
    return *core_;
  }
  void drop() noexcept {
    Core* core = std::exchange(core_, nullptr);
    if (!core) return;
    if (core->is_awaited()) [[unlikely]]
      detail::abort_awaited({"OneshotReceiver", nullptr});
    if (core->drop_receiver()) delete core;  // O1
  }

  Core* core_ = nullptr;
};

template <class T>
class OneshotReceiver<T>::Receive : public detail::Waiter {
 public:
  static constexpr const char* kWhat = "OneshotReceiver::receive()";

 protected:
  explicit Receive(OneshotReceiver& receiver) noexcept : receiver_(receiver) {}

  bool take() {
    Core& core = receiver_.core();
    if (core.is_awaited()) detail::throw_usage_error("OneshotReceiver: one receive() at a time");
    return core.receive(item_) != Core::Received::empty;
  }
  bool take_or_wait() noexcept {
    return receiver_.core_->receive_or_wait(*this, item_) != Core::Received::empty;
  }
  detail::Withdrawn withdraw() noexcept { return receiver_.core_->withdraw(*this); }
  std::optional<T> result() noexcept {
    if (!item_) static_cast<void>(receiver_.core_->receive(item_));
    return std::move(item_);
  }
  void give_back() noexcept {}  // it stays inside, or dies with the branch
  void introspect(TaskTreeCollector& tree) {
    const bool waits = receiver_.core_->is_awaited();
    detail::describe_wait(tree, {"Oneshot", nullptr, "receive"}, {waits ? 1u : 0u, 1});
  }

 private:
  OneshotReceiver& receiver_;
  std::optional<T> item_;
};

template <class T>
struct Oneshot {
  OneshotSender<T> sender;
  OneshotReceiver<T> receiver;

  // Throws std::bad_alloc.
  Oneshot() : Oneshot(*new detail::OneshotCore<T>()) {}

 private:
  explicit Oneshot(detail::OneshotCore<T>& core) noexcept : sender(core), receiver(core) {}
};

template <class T>
[[nodiscard]] Oneshot<T> oneshot() {
  return Oneshot<T>();
}

}  // namespace weft::inline v0
