// SPDX-License-Identifier: MIT
// The engine memory:// does what every store must.
#include "durable/memory_store.h"

#include <utility>
#include <vector>

#include "durable/memory_table.h"
#include "durable/table_store.h"
#include "support/durable_fixture.h"
#include "support/store_suite.h"
#include "weft/testing/virtual_loop.h"

namespace weft::test {

struct MemoryFactory {
  using Loop = weft::testing::VirtualLoop;
  std::unique_ptr<durable::LockStore> make() { return durable::detail::make_memory_store(name); }
  static std::chrono::nanoseconds lease() { return std::chrono::seconds(1); }
  std::string name = fresh_store_url();
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreSuite, MemoryFactory);

// Its commits are made in order, and their answers come together: which is looked at first is the loop's choice.
class BatchStore final : public durable::detail::TableStore {
 public:
  BatchStore() : TableStore("memory://batch") {}
  void carry_out_all() {
    for (durable::detail::TableCall* call : std::exchange(calls_, {})) {
      static_cast<void>(durable::detail::carry_out(table_, {call}, &loop_clock, ++commits_));
    }
  }
  [[nodiscard]] std::int64_t lease_clock() const override { return loop_clock(); }

 private:
  static std::int64_t loop_clock() { return Executor::current("a test").now_ns(); }
  void submit(durable::detail::TableCall& call) override { calls_.push_back(&call); }

  durable::detail::MemoryTable table_;
  std::vector<durable::detail::TableCall*> calls_;
  std::uint64_t commits_ = 0;
};

TEST(TableStore, AGrantIsToldWhicheverAnswerIsLookedAtFirst) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    weft::testing::VirtualLoop loop;
    loop.shuffle_by(seed);
    auto made = std::make_unique<BatchStore>();
    BatchStore& batch = *made;
    StoreSession session(std::move(made), std::chrono::seconds(1), "session");
    durable::Placed held;
    auto wait = [&]() -> Task<void> {
      held = or_throw(co_await session.enqueue("a", 1));
      auto second = [&]() -> Task<void> {
        durable::Placed placed = or_throw(co_await session.enqueue("a", 2));
        EXPECT_EQ(placed.standing, durable::Standing::queued);
      };
      auto release = [&]() -> Task<void> {
        co_await sleep_for(std::chrono::microseconds(1));  // submitted after the other
        or_throw(co_await session->release(1, held.tokens));
      };
      co_await all_of(second(), release());
      static_cast<void>(co_await session.until_granted(2));
      EXPECT_LT(loop.elapsed(), std::chrono::milliseconds(100)) << "nothing else has helped";
    };
    auto commit = [&]() -> Task<void> {
      while (true) {
        co_await sleep_for(std::chrono::milliseconds(1));
        batch.carry_out_all();
      }
    };
    auto root = [&]() -> Task<void> {
      or_throw(co_await session->open(session));
      auto serve = [&]() -> Task<void> { co_await session->run(); };
      // The store's own task waits for its last commit.
      auto work = [&]() -> Task<void> { co_await any_of(wait, serve); };
      co_await any_of(work, commit);
    };
    run(loop, root());
  }
}

TEST(MemoryStore, TokensRiseWhenTheLastSessionHasEnded) {
  weft::testing::VirtualLoop loop;
  MemoryFactory factory;
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    with_sessions(loop, factory, 1, [&](Sessions& s) -> Task<void> {
      durable::Placed held = or_throw(co_await s[0].enqueue("a", 1));
      EXPECT_GT(held.tokens.first, last);
      last = held.tokens.first + held.tokens.count - 1;
      or_throw(co_await s[0]->release(1, held.tokens));
    });
  }
}

}  // namespace weft::test
