// SPDX-License-Identifier: MIT
#include "weft/durable/fence_gate.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/durable_fixture.h"
#include "weft/durable/mutex.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::durable;
using namespace weft::test;
using namespace std::chrono_literals;

TEST(FenceGate, AdmitsTheGreatestAgainAndRefusesWhatIsSmaller) {
  FenceGate gate;
  EXPECT_EQ(gate.greatest("a"), 0u);
  EXPECT_TRUE(gate.admit("a", 5));
  EXPECT_TRUE(gate.admit("a", 5)) << "a holder writes more than once";
  EXPECT_TRUE(gate.admit("a", 7));
  EXPECT_FALSE(gate.admit("a", 6));
  EXPECT_FALSE(gate.admit("a", 5));
  EXPECT_EQ(gate.greatest("a"), 7u) << "what was refused is not remembered";
  EXPECT_TRUE(gate.admit("a", std::numeric_limits<std::uint64_t>::max()));
  EXPECT_FALSE(gate.admit("a", 8));
}

TEST(FenceGate, ResourcesHaveTheirOwnTokens) {
  FenceGate gate;
  EXPECT_TRUE(gate.admit("a", 9));
  EXPECT_TRUE(gate.admit("b", 1));
  EXPECT_FALSE(gate.admit("a", 1));
}

TEST(FenceGate, WritesOnlyWhatItAdmits) {
  FenceGate gate;
  std::string file;
  EXPECT_TRUE(gate.admit("a", 2, [&] { file += "two"; }));
  EXPECT_FALSE(gate.admit("a", 1, [&] { file += "one"; }));
  EXPECT_EQ(file, "two");
}

TEST(FenceGate, AWriteThatThrowsHasBeenAdmitted) {
  FenceGate gate;
  auto fails = [] { throw std::runtime_error("disk full"); };
  EXPECT_THROW(static_cast<void>(gate.admit("a", 2, fails)), std::runtime_error);
  EXPECT_FALSE(gate.admit("a", 1)) << "a part of it may be there";
  EXPECT_TRUE(gate.admit("a", 2));
}

TEST(FenceGate, WhenItIsFullWhatItDoesNotKnowIsRefused) {
  FenceGate gate(2);
  EXPECT_TRUE(gate.admit("a", 1));
  EXPECT_TRUE(gate.admit("b", 1));
  EXPECT_FALSE(gate.admit("c", 1));
  EXPECT_TRUE(gate.admit("a", 2)) << "what it knows is served";
  gate.forget("b");
  EXPECT_TRUE(gate.admit("c", 1));
  EXPECT_EQ(gate.greatest("b"), 0u);
}

// Whatever the order in which threads come, what is written last is the greatest token, and none comes after a greater one.
TEST(FenceGate, BetweenThreadsNoWriteComesAfterAGreaterToken) {
  constexpr std::uint64_t kTokens = 2000;
  FenceGate gate;
  std::vector<std::uint64_t> written;  // guarded by the gate
  auto write_all = [&](std::uint64_t from) {
    for (std::uint64_t token = from; token <= kTokens; token += 2) {
      static_cast<void>(gate.admit("a", token, [&] { written.push_back(token); }));
    }
  };
  std::thread odd(write_all, 1), even(write_all, 2);
  odd.join();
  even.join();
  ASSERT_FALSE(written.empty());
  EXPECT_TRUE(std::ranges::is_sorted(written));
  EXPECT_EQ(written.back(), kTokens);
}

// A holder that lost its lock without knowing, and writes.
TEST(FenceGate, RefusesAHolderWhoseLockIsAnothersNow) {
  weft::testing::VirtualLoop loop;
  FenceGate gate;
  std::string url = fresh_store_url();
  std::uint64_t stale = 0;
  auto with_lock = [&](std::chrono::seconds late, std::chrono::seconds hold,
                       bool revoke) -> Task<void> {
    auto body = [&, late, hold, revoke](Engine& engine) -> Task<void> {
      co_await sleep_for(late);
      if (revoke) or_throw(co_await engine.revoke("r"));
      weft::durable::Mutex lock = or_throw(co_await weft::durable::Mutex::open(engine, named("r")));
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_TRUE(gate.admit("r", held.fencing_token()));
        if (!revoke) stale = held.fencing_token();
        co_await sleep_for(hold);
      };
      LockResult<> done = co_await lock.on_acquire(section);
      EXPECT_EQ(done.has_value(), revoke);
    };
    or_throw(co_await with_engine(url, body));
  };
  auto root = [&]() -> Task<void> {
    co_await all_of(with_lock(0s, 100s, false), with_lock(1s, 1s, true));
  };
  run(loop, root());
  EXPECT_GT(stale, 0u);
  EXPECT_FALSE(gate.admit("r", stale)) << "its late write";
}

TEST(FencedUpdate, IsOneStatementWithItsCondition) {
  FencedUpdate update{.table = "orders", .assignments = "state = ?", .where = "id = ? OR twin = ?"};
  EXPECT_EQ(update.sql(),
            "UPDATE orders SET state = ?, fencing_token = ? WHERE (id = ? OR twin = ?) AND "
            "fencing_token <= ?");
}

TEST(FencedUpdate, ParametersAndColumnsAsADatabaseHasThem) {
  FencedUpdate update{.table = "orders",
                      .assignments = "state = $1",
                      .where = "id = $2",
                      .column = "fence",
                      .token = "$3"};
  EXPECT_EQ(update.sql(),
            "UPDATE orders SET state = $1, fence = $3 WHERE (id = $2) AND fence <= $3");
  EXPECT_EQ(update.condition(), "fence <= $3");
}

TEST(FencedUpdate, OfTheTokenAloneAndOfEveryRow) {
  FencedUpdate update{.table = "lease"};
  EXPECT_EQ(update.sql(), "UPDATE lease SET fencing_token = ? WHERE fencing_token <= ?");
}

}  // namespace
