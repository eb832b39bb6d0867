// SPDX-License-Identifier: MIT
#pragma once
// A LockStore between an engine and another store. Every call goes to the inner one by way of what is derived from it:
//
//     class Slow final : public StoreBetween<Slow> {
//       friend StoreBetween;
//       template <class R, class Call>
//       Task<durable::LockResult<R>> through(std::string name, Call& call);   // name: "renew"; call(): carries it out
//     };
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/durable/lock_store.h"
#include "weft/weft.h"

namespace weft::test {

template <class Derived>
class StoreBetween : public durable::LockStore {
 public:
  Task<durable::LockResult<>> open(Listener& listener) override { return inner_->open(listener); }
  Task<void> run() override { return inner_->run(); }
  Task<void> close() override { return inner_->close(); }
  Task<durable::LockResult<>> join(const std::string& resource, std::uint32_t capacity) override {
    auto call = [&]() { return inner_->join(resource, capacity); };
    co_return co_await self().template through<void>("join", call);
  }
  Task<durable::LockResult<durable::Placed>> enqueue(
      const durable::TicketRequest& request) override {
    auto call = [&]() { return inner_->enqueue(request); };
    co_return co_await self().template through<durable::Placed>("enqueue", call);
  }
  Task<durable::LockResult<std::vector<durable::TicketNumber>>> renew(
      std::vector<durable::TicketNumber> tickets) override {
    auto call = [&]() { return inner_->renew(tickets); };
    co_return co_await self().template through<std::vector<durable::TicketNumber>>("renew", call);
  }
  Task<durable::LockResult<>> release(durable::TicketNumber ticket,
                                      durable::TokenBlock tokens) override {
    auto call = [&]() { return inner_->release(ticket, tokens); };
    co_return co_await self().template through<void>("release", call);
  }
  Task<durable::LockResult<>> withdraw(durable::TicketNumber ticket) override {
    auto call = [&]() { return inner_->withdraw(ticket); };
    co_return co_await self().template through<void>("withdraw", call);
  }
  Task<durable::LockResult<bool>> retire(const std::string& resource) override {
    auto call = [&]() { return inner_->retire(resource); };
    co_return co_await self().template through<bool>("retire", call);
  }
  Task<durable::LockResult<std::size_t>> revoke(const std::string& resource) override {
    auto call = [&]() { return inner_->revoke(resource); };
    co_return co_await self().template through<std::size_t>("revoke", call);
  }
  Task<durable::LockResult<std::vector<durable::ResourceReport>>> report(
      std::optional<std::string> resource) override {
    auto call = [&]() { return inner_->report(resource); };
    co_return co_await self().template through<std::vector<durable::ResourceReport>>("report",
                                                                                     call);
  }
  [[nodiscard]] std::int64_t lease_clock() const override { return inner_->lease_clock(); }
  [[nodiscard]] std::string url() const override { return inner_->url(); }

 protected:
  explicit StoreBetween(std::unique_ptr<durable::LockStore> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] durable::LockStore& inner() noexcept { return *inner_; }

 private:
  [[nodiscard]] Derived& self() noexcept { return static_cast<Derived&>(*this); }

  std::unique_ptr<durable::LockStore> inner_;
};

}  // namespace weft::test
