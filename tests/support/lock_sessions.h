// SPDX-License-Identifier: MIT
#pragma once
// LockSessions of a lock store that a test opens, runs and closes by itself; store_session.h has those of the conformance suite.
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
#include "weft/weft.h"

namespace weft::test {

// A session, and what it was told.
class LockSession final : public durable::LockStore::Listener {
 public:
  explicit LockSession(std::unique_ptr<durable::LockStore> made) : store(std::move(made)) {}

  void granted(durable::TicketNumber ticket, durable::TokenBlock tokens) override {
    grants[ticket] = tokens;
    news.set();
  }
  void gone(durable::TicketNumber ticket) override {
    lost.insert(ticket);
    news.set();
  }
  Task<durable::TokenBlock> until_granted(durable::TicketNumber ticket) {
    while (!grants.contains(ticket)) co_await news.wait();
    co_return grants[ticket];
  }
  Task<void> until_gone(durable::TicketNumber ticket) {
    while (!lost.contains(ticket)) co_await news.wait();
  }
  // Enqueues, and waits if it must.
  Task<durable::TokenBlock> acquire(const durable::TicketRequest& request) {
    durable::LockResult<durable::Placed> placed = co_await store->enqueue(request);
    if (or_throw(placed).standing == durable::Standing::granted) co_return placed->tokens;
    co_return co_await until_granted(request.number);
  }

  std::unique_ptr<durable::LockStore> store;
  std::map<durable::TicketNumber, durable::TokenBlock> grants;
  std::set<durable::TicketNumber> lost;
  AutoEvent news;
};

using LockSessions = std::vector<std::unique_ptr<LockSession>>;

// Opens them, runs them, and closes them after body(sessions). Requires: the body is named, and outlives it.
using LockSessionsBody = std::function<Task<void>(LockSessions&)>;
inline Task<void> with_lock_sessions(LockSessions& sessions, const LockSessionsBody& body) {
  for (auto& each : sessions) {
    durable::LockResult<> opened = co_await each->store->open(*each);
    or_throw(opened);
  }
  auto inside = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (auto& each : sessions) nursery.start(each->store->run());
    co_await body(sessions);
    co_return cancel;
  };
  auto work = [&]() -> Task<void> { co_await with_nursery(inside); };
  auto cleanup = [&]() -> Task<void> {
    for (auto& each : sessions) co_await each->store->close();
  };
  co_await try_(work).finally(cleanup);
}

}  // namespace weft::test
