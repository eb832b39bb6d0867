// SPDX-License-Identifier: MIT
#pragma once
// A LockStore between an engine and another store, which loses calls and answers, and takes its time.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/durable/lock_store.h"
#include "weft/weft.h"

namespace weft::test {

class FaultyStore final : public durable::LockStore, private durable::LockStore::Listener {
 public:
  enum class Fault {
    none,
    lose_call,    // it never got there
    lose_answer,  // it was carried out, and nobody was told
    never,        // no answer at all, until cancelled
    full,         // LockError::storage
  };
  // What happens to the next call of that name. Asked at each call.
  using Plan = std::function<Fault(const std::string& call)>;

  FaultyStore(std::unique_ptr<durable::LockStore> inner, Plan plan)
      : inner_(std::move(inner)), plan_(std::move(plan)) {}

  std::chrono::nanoseconds there{};  // a call takes so long to get there,
  std::chrono::nanoseconds back{};   // and its answer to come back
  std::chrono::nanoseconds patience{
      std::chrono::milliseconds(100)};  // after which a lost call is given up
  bool drops_news = false;
  std::chrono::nanoseconds
      ahead{};  // of the inner clock: as after a suspend, in which no timer runs

  Task<durable::LockResult<>> open(durable::LockStore::Listener& listener) override {
    listener_ = &listener;
    return inner_->open(*this);
  }
  Task<void> run() override { return inner_->run(); }
  Task<void> close() override { return inner_->close(); }
  Task<durable::LockResult<>> join(const std::string& resource, std::uint32_t capacity) override {
    auto call = [&]() { return inner_->join(resource, capacity); };
    co_return co_await through<void>("join", call);
  }
  Task<durable::LockResult<durable::Placed>> enqueue(
      const durable::TicketRequest& request) override {
    auto call = [&]() { return inner_->enqueue(request); };
    co_return co_await through<durable::Placed>("enqueue", call);
  }
  Task<durable::LockResult<std::vector<durable::TicketNumber>>> renew(
      std::vector<durable::TicketNumber> tickets) override {
    auto call = [&]() { return inner_->renew(tickets); };
    co_return co_await through<std::vector<durable::TicketNumber>>("renew", call);
  }
  Task<durable::LockResult<>> release(durable::TicketNumber ticket,
                                      durable::TokenBlock tokens) override {
    auto call = [&]() { return inner_->release(ticket, tokens); };
    co_return co_await through<void>("release", call);
  }
  Task<durable::LockResult<>> withdraw(durable::TicketNumber ticket) override {
    auto call = [&]() { return inner_->withdraw(ticket); };
    co_return co_await through<void>("withdraw", call);
  }
  Task<durable::LockResult<bool>> retire(const std::string& resource) override {
    auto call = [&]() { return inner_->retire(resource); };
    co_return co_await through<bool>("retire", call);
  }
  Task<durable::LockResult<std::size_t>> revoke(const std::string& resource) override {
    auto call = [&]() { return inner_->revoke(resource); };
    co_return co_await through<std::size_t>("revoke", call);
  }
  Task<durable::LockResult<std::vector<durable::ResourceReport>>> report(
      std::optional<std::string> resource) override {
    auto call = [&]() { return inner_->report(resource); };
    co_return co_await through<std::vector<durable::ResourceReport>>("report", call);
  }
  [[nodiscard]] std::int64_t lease_clock() const override {
    return inner_->lease_clock() + ahead.count();
  }
  [[nodiscard]] std::string url() const override { return inner_->url(); }

 private:
  template <class R, class Call>
  Task<durable::LockResult<R>> through(std::string name, Call& call) {
    using durable::LockError;
    Fault fault = plan_(name);
    if (fault == Fault::never) co_await suspend_forever();
    if (fault == Fault::full)
      co_return std::unexpected(LockError(LockError::storage, "the disk is full"));
    if (there > std::chrono::nanoseconds(0)) co_await sleep_for(there);
    if (fault == Fault::lose_call) {
      co_await sleep_for(patience);
      co_return std::unexpected(LockError(LockError::unreachable, name + "() was lost"));
    }
    durable::LockResult<R> answer = co_await call();
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

  std::unique_ptr<durable::LockStore> inner_;
  Plan plan_;
  durable::LockStore::Listener* listener_ = nullptr;
};

}  // namespace weft::test
