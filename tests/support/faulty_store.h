// SPDX-License-Identifier: MIT
#pragma once
// A LockStore between an engine and another store, which loses calls and answers, and takes its time.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "support/store_between.h"
#include "weft/durable/lock_store.h"
#include "weft/weft.h"

namespace weft::test {

class FaultyStore final : public StoreBetween<FaultyStore>, private durable::LockStore::Listener {
 public:
  enum class Fault {
    none,
    lose_call,    // it never got there
    lose_answer,  // it was carried out, and nobody was told
    never,        // no answer at all, until cancelled
    full,         // LockError::storage
    late_call,    // it is under way for `late`, and cannot be cancelled
    late_answer,  // the same, and was carried out at once
  };
  // What happens to the next call of that name. Asked at each call.
  using Plan = std::function<Fault(const std::string& call)>;

  FaultyStore(std::unique_ptr<durable::LockStore> inner, Plan plan)
      : StoreBetween(std::move(inner)), plan_(std::move(plan)) {}

  std::chrono::nanoseconds there{};  // a call takes so long to get there,
  std::chrono::nanoseconds back{};   // and its answer to come back
  std::chrono::nanoseconds patience{
      std::chrono::milliseconds(100)};  // after which a lost call is given up
  std::chrono::nanoseconds late{std::chrono::seconds(8)};
  bool drops_news = false;
  std::chrono::nanoseconds
      ahead{};  // of the inner clock: as after a suspend, in which no timer runs

  Task<durable::LockResult<>> open(durable::LockStore::Listener& listener) override {
    listener_ = &listener;
    return inner().open(*this);
  }
  [[nodiscard]] std::int64_t lease_clock() const override {
    return StoreBetween::lease_clock() + ahead.count();
  }

 private:
  friend StoreBetween;

  template <class R, class Call>
  Task<durable::LockResult<R>> through(std::string name, Call& call) {
    using durable::LockError;
    Fault fault = plan_(name);
    if (fault == Fault::never) co_await suspend_forever();
    if (fault == Fault::full)
      co_return std::unexpected(LockError(LockError::storage, "the disk is full"));
    if (there > std::chrono::nanoseconds(0)) co_await sleep_for(there);
    if (fault == Fault::late_call) co_await noncancellable(sleep_for(late));
    if (fault == Fault::lose_call) {
      co_await sleep_for(patience);
      co_return std::unexpected(LockError(LockError::unreachable, name + "() was lost"));
    }
    durable::LockResult<R> answer = co_await call();
    if (fault == Fault::late_answer) co_await noncancellable(sleep_for(late));
    if (back > std::chrono::nanoseconds(0)) co_await sleep_for(back);
    if (fault == Fault::lose_answer) {
      co_await sleep_for(patience);
      co_return std::unexpected(
          LockError(LockError::unreachable, "the answer to " + name + "() was lost"));
    }
    co_return answer;
  }
  void granted(durable::TicketNumber ticket, durable::TokenBlock tokens) override {
    if (!drops_news) listener_->granted(ticket, tokens);
  }
  void gone(durable::TicketNumber ticket) override {
    if (!drops_news) listener_->gone(ticket);
  }

  Plan plan_;
  durable::LockStore::Listener* listener_ = nullptr;
};

}  // namespace weft::test
