// SPDX-License-Identifier: MIT
#pragma once
// Sessions of a LockStore, and what they were told: for the tests of every store.
//
//     with_sessions(loop, factory, 2, [&](Sessions& s) -> Task<void> {
//       Placed first = or_throw(co_await s[0].enqueue("a", 1));
//       …
//       TokenBlock tokens = co_await s[1].until_granted(1);
//     });
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/durable/lock_store.h"
#include "weft/sync/auto_event.h"
#include "weft/weft.h"

namespace weft::test {

class StoreSession final : public durable::LockStore::Listener {
 public:
  // lease: of the tickets.
  StoreSession(std::unique_ptr<durable::LockStore> made, std::chrono::nanoseconds lease,
               std::string name)
      : store_(std::move(made)), lease_(lease), name_(std::move(name)) {}

  [[nodiscard]] durable::LockStore& store() noexcept { return *store_; }
  durable::LockStore* operator->() noexcept { return store_.get(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  [[nodiscard]] durable::TicketRequest request(std::string resource, durable::TicketNumber number,
                                               std::uint32_t weight = 1,
                                               std::uint32_t capacity = 1) const {
    durable::TicketRequest made;
    made.resource = std::move(resource);
    made.number = number;
    made.weight = weight;
    made.capacity = capacity;
    made.lease = lease_;
    made.tokens = 8;
    made.owner = name_;
    return made;
  }
  Task<durable::LockResult<durable::Placed>> enqueue(std::string resource,
                                                     durable::TicketNumber number,
                                                     std::uint32_t weight = 1,
                                                     std::uint32_t capacity = 1) {
    const durable::TicketRequest made = request(std::move(resource), number, weight, capacity);
    co_return co_await store_->enqueue(made);
  }
  Task<durable::LockResult<durable::Placed>> try_enqueue(std::string resource,
                                                         durable::TicketNumber number,
                                                         std::uint32_t weight = 1,
                                                         std::uint32_t capacity = 1) {
    durable::TicketRequest made = request(std::move(resource), number, weight, capacity);
    made.only_if_free = true;
    co_return co_await store_->enqueue(made);
  }

  // Fails the test, and gives an empty block, if it takes too long.
  Task<durable::TokenBlock> until_granted(durable::TicketNumber number) {
    auto there = [this, number] { return granted_.contains(number); };
    co_await until(there, "granted", number);
    co_return granted_[number];
  }
  Task<void> until_gone(durable::TicketNumber number) {
    auto there = [this, number] { return gone_.contains(number); };
    co_await until(there, "gone", number);
  }
  [[nodiscard]] bool was_granted(durable::TicketNumber number) const {
    return granted_.contains(number);
  }
  [[nodiscard]] bool is_gone(durable::TicketNumber number) const { return gone_.contains(number); }

  void granted(durable::TicketNumber number, durable::TokenBlock tokens) override {
    granted_[number] = tokens;
    changed_.set();
  }
  void gone(durable::TicketNumber number) override {
    gone_.insert(number);
    changed_.set();
  }

 private:
  Task<void> until(std::function<bool()> there, const char* what, durable::TicketNumber number) {
    auto wait = [&]() -> Task<void> {
      while (!there()) co_await changed_.wait();
    };
    auto in_time = co_await timeout(std::chrono::seconds(20), wait);
    EXPECT_TRUE(in_time) << name_ << ": ticket " << number << " was not " << what;
  }

  std::unique_ptr<durable::LockStore> store_;
  std::chrono::nanoseconds lease_;
  std::string name_;
  std::map<durable::TicketNumber, durable::TokenBlock> granted_;
  std::set<durable::TicketNumber> gone_;
  AutoEvent changed_;
};

class Sessions {
 public:
  StoreSession& operator[](std::size_t which) { return *all_[which]; }
  void add(std::unique_ptr<StoreSession> session) { all_.push_back(std::move(session)); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

 private:
  std::vector<std::unique_ptr<StoreSession>> all_;
};

// Opens and runs `count` sessions, runs the body, closes them.
// Factory: `make()`, another session on the same store; `lease()`.
template <class Loop, class Factory>
void with_sessions(Loop& loop, Factory& factory, std::size_t count,
                   std::function<Task<void>(Sessions&)> body) {
  Sessions sessions;
  for (std::size_t i = 0; i < count; ++i) {
    sessions.add(std::make_unique<StoreSession>(factory.make(), factory.lease(),
                                                "session " + std::to_string(i)));
  }
  auto inside = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < count; ++i) {
      durable::LockResult<> opened = co_await sessions[i]->open(sessions[i]);
      or_throw(std::move(opened));
      nursery.start(sessions[i]->run());
    }
    co_await body(sessions);
    co_return cancel;
  };
  auto root = [&]() -> Task<void> {
    co_await with_nursery(inside);
    for (std::size_t i = 0; i < count; ++i) co_await sessions[i]->close();
  };
  auto in_time = [&]() -> Task<bool> {
    auto ended = co_await timeout(std::chrono::seconds(60), root());
    co_return ended.has_value();
  };
  EXPECT_TRUE(run_on(loop, in_time())) << "it hangs";
  EXPECT_EQ(loop.strand_count(), 0u);
}

}  // namespace weft::test
