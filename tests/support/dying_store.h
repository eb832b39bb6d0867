// SPDX-License-Identifier: MIT
#pragma once
// A LockStore between an engine and another store, in a process that ends by SIGKILL when it comes to a named point: before a call, or after it has been
// carried out and before anybody hears of it.
//
//     DyingStore store(or_throw(make_store(url)), {"release", DyingStore::after, 1});
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/durable/lock_store.h"
#include "weft/weft.h"

namespace weft::test {

class DyingStore final : public durable::LockStore {
 public:
  enum Point { before, after };
  struct Death {
    std::string call;  // "renew"; one that is never made: it lives
    Point point = before;
    int time = 1;  // at the first, second …
  };
  using Seen = std::function<void(const std::string& call, Point point)>;

  // seen: of every point that is passed, before it dies there.
  DyingStore(std::unique_ptr<durable::LockStore> inner, Death death, Seen seen)
      : inner_(std::move(inner)), death_(std::move(death)), seen_(std::move(seen)) {}

  Task<durable::LockResult<>> open(Listener& listener) override { return inner_->open(listener); }
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
    return inner_->report(std::move(resource));
  }
  [[nodiscard]] std::int64_t lease_clock() const override { return inner_->lease_clock(); }
  [[nodiscard]] std::string url() const override { return inner_->url(); }

  // Calls of that name that were answered.
  [[nodiscard]] int answered(const std::string& call) const {
    auto place = answered_.find(call);
    return place == answered_.end() ? 0 : place->second;
  }

 private:
  template <class R, class Call>
  Task<durable::LockResult<R>> through(std::string name, Call& call) {
    pass(name, before);
    durable::LockResult<R> answer = co_await call();
    pass(name, after);
    ++answered_[name];
    co_return answer;
  }
  void pass(const std::string& name, Point point) {
    seen_(name, point);
    if (name != death_.call || point != death_.point || --death_.time > 0) return;
    ::kill(::getpid(), SIGKILL);
  }

  std::unique_ptr<durable::LockStore> inner_;
  Death death_;
  Seen seen_;
  std::map<std::string, int> answered_;
};

}  // namespace weft::test
