// SPDX-License-Identifier: MIT
#include "weft/core/callback.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

struct CallbackTest : LoopTest<VirtualLoop> {
  // Calls back what a subject left in `later` at 1 ms; cancels the subject first if so asked.
  template <class Fn>
  Outcome<void> drive(Fn subject, bool cancel_first) {
    auto root = [&]() -> Task<Outcome<void>> {
      StartedTask<void> s = subject().start_in_current_scope();
      co_await sleep_for(1ms);
      if (cancel_first) s.cancel();
      co_await yield();
      if (later) later();
      co_return co_await s.outcome();
    };
    return run(loop, root());
  }
  std::function<void()> later;
  Events events;
};

TEST_F(CallbackTest, OneArgumentIsItselfNoneIsVoidSeveralAreATuple) {
  auto root = []() -> Task<void> {
    auto none = [](auto done) { done(); };
    co_await until_callback(none);
    auto one = [](auto done) { done(std::make_unique<int>(3)); };
    std::unique_ptr<int> pointer = co_await until_callback<void(std::unique_ptr<int>)>(one);
    EXPECT_EQ(*pointer, 3);
    auto two = [](auto done) { done(1, "two"); };
    std::tuple<int, std::string> both = co_await until_callback<void(int, std::string)>(two);
    EXPECT_EQ(both, std::tuple(1, "two"));
  };
  run(loop, root());  // each called back inside the initiator
}

TEST_F(CallbackTest, OfSeveralCallbacksTheFirstIsTheResult) {
  auto root = []() -> Task<void> {
    auto fails = [](auto, auto failed) { failed("no"); };
    auto result = co_await until_callback<void(int), void(std::string)>(fails);
    EXPECT_EQ(result.index(), 1u);
    EXPECT_EQ(std::get<0>(std::get<1>(result)), "no");
  };
  run(loop, root());
}

TEST_F(CallbackTest, ACallbackFromALoopCallbackDoesNotRunTheWaiterInline) {
  auto subject = [&]() -> Task<void> {
    auto init = [&](auto done) {
      later = [&, done] {
        done();
        events.push_back("called back");
      };
    };
    co_await until_callback(init);
    events.push_back("resumed");
  };
  EXPECT_TRUE(drive(subject, false).has_value());
  EXPECT_EQ(events, (Events{"called back", "resumed"}));
}

TEST_F(CallbackTest, WithoutACancelFunctionTheCallbackIsWaitedForAndDelivered) {
  auto subject = [&]() -> Task<void> {
    auto init = [&](auto done) { later = [done] { done(8); }; };
    int value = co_await until_callback<void(int)>(init);
    events.push_back(std::to_string(value));
  };
  EXPECT_TRUE(drive(subject, true).has_value());
  EXPECT_EQ(events, (Events{"8"}));
}

TEST_F(CallbackTest, ACancelFunctionEndsTheWait) {
  auto subject = [&]() -> Task<void> {
    auto init = [&](auto done) { later = [done] { done(8); }; };
    auto cancel = [&] {
      events.push_back("cancel");
      later = nullptr;
    };
    co_await until_callback<void(int)>(init, cancel);
    events.push_back("not reached");
  };
  EXPECT_TRUE(drive(subject, true).is_cancelled());
  EXPECT_EQ(events, (Events{"cancel"}));
}

TEST_F(CallbackTest, ACallbackInsideTheCancelFunctionIsDelivered) {
  auto subject = [&]() -> Task<void> {
    std::function<void()> call;
    auto init = [&](auto done) { call = [done] { done(9); }; };
    auto cancel = [&] { call(); };
    int value = co_await until_callback<void(int)>(init, cancel);
    events.push_back(std::to_string(value));
  };
  EXPECT_TRUE(drive(subject, true).has_value());
  EXPECT_EQ(events, (Events{"9"}));
}

TEST_F(CallbackTest, AnInitiatorThatThrowsEndsTheWait) {
  auto root = []() -> Task<void> {
    auto init = [](auto) { throw std::runtime_error("init"); };
    co_await until_callback(init);
  };
  EXPECT_THROW(run(loop, root()), std::runtime_error);
}

TEST_F(CallbackTest, ACombinatorCancelsIt) {
  bool cancelled = false;
  auto root = [&]() -> Task<void> {
    auto init = [](auto) {};
    auto cancel = [&] { cancelled = true; };
    auto [a, b] = co_await any_of(until_callback<void(int)>(init, cancel), sleep_for(1ms));
    EXPECT_FALSE(a);
  };
  run(loop, root());
  EXPECT_TRUE(cancelled);
}

TEST(Callback, MayComeFromAnyThread) {
  ThreadLoop loop;
  auto root = []() -> Task<int> {
    std::thread other;
    auto init = [&](auto done) { other = std::thread([done] { done(7); }); };
    int value = co_await until_callback<void(int)>(init);
    other.join();
    co_return value;
  };
  EXPECT_EQ(run(loop, root()), 7);
}

TEST(CallbackDeathTest, ASecondCallIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto twice = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto init = [](auto done) {
        done();
        done();
      };
      co_await until_callback(init);
    };
    run(loop, root());
  };
  EXPECT_DEATH(twice(), "one is called, once");
}

// An argument whose copy throws when it is told to.
struct Fragile {
  explicit Fragile(bool t) : throws(t) {}
  Fragile(const Fragile& other) : throws(other.throws) {
    if (throws) throw std::runtime_error("cannot be copied");
  }
  bool throws;
};

TEST_F(CallbackTest, AnArgumentThatCannotBeStoredEndsTheWaitWithItsException) {
  auto subject = [&]() -> Task<void> {
    auto start = [&](auto done) { later = [done] { EXPECT_NO_THROW(done(Fragile(true))); }; };
    static_cast<void>(co_await until_callback<void(const Fragile&)>(start));
  };
  EXPECT_THROW(drive(subject, false).get(), std::runtime_error);
}

// By value, the copy is made before the wait hears of the call: the caller has the exception, and
// may call again.
TEST_F(CallbackTest, AnArgumentThatCannotBePassedLeavesTheWaitAsItWas) {
  auto root = []() -> Task<void> {
    auto start = [](auto done) {
      Fragile bad(true);
      EXPECT_THROW(done(bad), std::runtime_error);
      done(Fragile(false));
    };
    Fragile got = co_await until_callback<void(Fragile)>(start);
    EXPECT_FALSE(got.throws);
  };
  run(loop, root());
}

TEST_F(CallbackTest, ADescriptionOutlivesTheFunctionsThatItWasMadeOf) {
  auto describe = [&events = events](int answer) {
    auto start = [answer, &events](auto) { events.push_back("start " + std::to_string(answer)); };
    auto stop = [answer, &events] { events.push_back("stop " + std::to_string(answer)); };
    auto named_start = std::make_unique<decltype(start)>(start);
    auto named_stop = std::make_unique<decltype(stop)>(stop);
    return until_callback<void(int)>(*named_start, *named_stop);
  };
  auto subject = [&]() -> Task<void> {
    auto description = describe(7);
    static_cast<void>(co_await std::move(description));
  };
  EXPECT_TRUE(drive(subject, true).is_cancelled());
  EXPECT_EQ(events, (Events{"start 7", "stop 7"}));
}

TEST_F(CallbackTest, ANamedFunctionThatCannotBeCopiedIsReferredTo) {
  auto root = []() -> Task<int> {
    auto start = [kept = std::make_unique<int>(8)](auto done) { done(*kept); };
    co_return co_await until_callback<void(int)>(start);
  };
  EXPECT_EQ(run(loop, root()), 8);
}

}  // namespace
