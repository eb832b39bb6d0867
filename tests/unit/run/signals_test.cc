// SPDX-License-Identifier: MIT
#include "weft/run/signals.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <latch>
#include <thread>
#include <vector>

#include "support/drivers.h"
#include "support/loop_fixture.h"
#include "weft/weft.h"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

void (*handler_of(int signal))(int) {
  struct sigaction now;
  EXPECT_EQ(::sigaction(signal, nullptr, &now), 0);
  return now.sa_handler;
}

void send(int signal) { EXPECT_EQ(::kill(::getpid(), signal), 0); }

// What a signal did is there again, whatever a test does.
class SignalsTest : public ::testing::TestWithParam<Driver> {
 protected:
  EventLoop loop{{.driver = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Drivers, SignalsTest, ::testing::ValuesIn(drivers_here()), driver_name);

TEST_P(SignalsTest, ComesToTheOneThatWaits) {
  auto main = []() -> Task<int> {
    SignalSet signals({SIGUSR1, SIGUSR2});
    auto sender = []() -> Task<> {
      send(SIGUSR2);
      co_return;
    };
    Scope& scope = co_await current_scope();
    StartedTask<> sending = sender().start(scope);
    int which = co_await signals.next();
    co_await std::move(sending);
    co_return which;
  };
  EXPECT_EQ(run(loop, main()), SIGUSR2);
}

TEST_P(SignalsTest, OneThatComesWhileNobodyWaitsIsKept) {
  auto main = []() -> Task<std::vector<int>> {
    SignalSet signals({SIGUSR1, SIGUSR2});
    send(SIGUSR2);
    send(SIGUSR1);
    send(SIGUSR1);  // still one
    std::vector<int> heard;
    heard.push_back(co_await signals.next());
    heard.push_back(co_await signals.next());
    auto third = co_await timeout(2ms, signals.next());
    EXPECT_FALSE(third.has_value());
    send(SIGUSR2);
    heard.push_back(co_await signals.next());
    co_return heard;
  };
  EXPECT_EQ(run(loop, main()), (std::vector<int>{SIGUSR1, SIGUSR2, SIGUSR2}));
}

TEST_P(SignalsTest, EverySetHearsOfIt) {
  auto main = []() -> Task<int> {
    int heard = 0;
    auto waiter = [&]() -> Task<> {
      co_await signal_received(SIGUSR1);
      ++heard;
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 5; ++i) n.start(waiter);
      co_await yield();
      co_await yield();
      send(SIGUSR1);
      co_return join;
    };
    co_await with_nursery(body);
    co_return heard;
  };
  EXPECT_EQ(run(loop, main()), 5);
}

TEST_P(SignalsTest, AThreadThatWeftDoesNotKnowMayGetIt) {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  std::jthread receiver([](std::stop_token stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
  });
  pthread_sigmask(SIG_BLOCK, &one, &before);  // so that only the other thread can take it
  auto main = []() -> Task<int> {
    SignalSet signals({SIGUSR1});
    send(SIGUSR1);
    co_return co_await signals.next();
  };
  EXPECT_EQ(run(loop, main()), SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_P(SignalsTest, ACancelledWaitTakesNothing) {
  auto main = []() -> Task<> {
    SignalSet signals({SIGUSR1});
    auto nothing = co_await timeout(1ms, signals.next());
    EXPECT_FALSE(nothing.has_value());
    send(SIGUSR1);
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      auto late = [&]() -> Task<> { EXPECT_EQ(co_await signals.next(), 0) << "not reached"; };
      n.start(late);
      co_return cancel;  // it is cancelled before its first step
    };
    co_await with_nursery(body);
    EXPECT_EQ(signals.try_next(), SIGUSR1);
    EXPECT_EQ(signals.try_next(), std::nullopt);
  };
  run(loop, main());
}

TEST_P(SignalsTest, AWaitAfterOneThatWasHeardSleeps) {
  auto main = [&]() -> Task<> {
    SignalSet signals({SIGUSR1});
    auto hear = [&]() -> Task<> { EXPECT_EQ(co_await signals.next(), SIGUSR1); };
    Scope& scope = co_await current_scope();
    StartedTask<> hearing = hear().start(scope);
    co_await sleep_for(1ms);
    send(SIGUSR1);
    co_await std::move(hearing);
    std::uint64_t turns = loop.statistics().turns;
    auto nothing = co_await timeout(10ms, signals.next());
    EXPECT_FALSE(nothing.has_value());
    EXPECT_LT(loop.statistics().turns - turns, 20u);
  };
  run(loop, main());
}

TEST_P(SignalsTest, ASetMovesFromLoopToLoop) {
  EventLoop other{{.driver = GetParam()}};
  SignalSet signals({SIGUSR1});
  auto wait = [&]() -> Task<int> { co_return co_await signals.next(); };
  send(SIGUSR1);
  EXPECT_EQ(run(loop, wait()), SIGUSR1);
  SignalSet moved = std::move(signals);
  signals = std::move(moved);
  send(SIGUSR1);
  EXPECT_EQ(run(other, wait()), SIGUSR1);
}

TEST(Signals, WhatASignalDidIsInForceAgainAfterTheLastSet) {
  auto before = [](int) {};
  std::signal(SIGUSR1, before);
  {
    SignalSet outer({SIGUSR1});
    auto ours = handler_of(SIGUSR1);
    EXPECT_NE(ours, +before);
    {
      SignalSet inner({SIGUSR1, SIGUSR2});
    }
    EXPECT_EQ(handler_of(SIGUSR1), ours);
    EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
  }
  EXPECT_EQ(handler_of(SIGUSR1), +before);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(Signals, WhatSomebodyInstalledMeanwhileStays) {
  auto theirs = [](int) {};
  {
    SignalSet signals({SIGUSR1});
    std::signal(SIGUSR1, theirs);
  }
  EXPECT_EQ(handler_of(SIGUSR1), +theirs);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(Signals, WhatTheInterruptedProgramSeesIsUnchanged) {
  SignalSet signals({SIGUSR1});
  errno = E2BIG;
  ::raise(SIGUSR1);
  EXPECT_EQ(errno, E2BIG);
  EXPECT_EQ(signals.try_next(), SIGUSR1);
}

TEST(Signals, WhatIsNoSignalIsRefusedAndChangesNothing) {
  EXPECT_THROW(SignalSet({SIGHUP, SIGUSR1, SIGKILL}), std::system_error);
  EXPECT_THROW(SignalSet({0}), std::system_error);
  EXPECT_THROW(SignalSet({65}), std::system_error);
  EXPECT_THROW(SignalSet({SIGSEGV}), UsageError);
  EXPECT_EQ(handler_of(SIGHUP), SIG_DFL);
  EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
}

TEST(Signals, ASecondWaiterOfOneSetIsRefused) {
  EventLoop loop;
  auto main = []() -> Task<> {
    SignalSet signals({SIGUSR1});
    auto second = [&]() -> Task<> {
      co_await yield();
      EXPECT_THROW(static_cast<void>(co_await signals.next()), UsageError);
      std::thread([&] {
        EventLoop elsewhere;
        EXPECT_THROW(static_cast<void>(run(elsewhere, timeout(5s, signals.next()))), UsageError);
      }).join();
      send(SIGUSR1);
    };
    co_await all_of(signals.next(), second());
  };
  run(loop, main());
}

TEST(Signals, SetsLeaveNoDescriptorsBehind) {
  // One entry is kept for each set that lived at the same time, and no more.
  {
    SignalSet a({SIGUSR1}), b({SIGUSR1});
  }
  int lowest = ::dup(0);
  ::close(lowest);
  for (int i = 0; i < 100; ++i) SignalSet a({SIGUSR1}), b({SIGUSR2});
  int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(lowest, after);
}

TEST(Signals, SetsComeAndGoWhileSignalsDo) {
  EventLoop loop;
  auto main = []() -> Task<> {
    SignalSet kept({SIGUSR1, SIGUSR2});  // so that none of them ends the process
    std::atomic<bool> over = false;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!over) {
          // They take each other's place, and a handler may be late.
          for (int signal : {SIGUSR1, SIGUSR2}) {
            SignalSet one({signal});
            EXPECT_EQ(one.try_next().value_or(signal), signal);
          }
        }
      });
    }
    for (int i = 0; i < 200; ++i) {
      for (int signal : {SIGUSR1, SIGUSR2}) {
        send(signal);
        EXPECT_EQ(co_await kept.next(), signal);
      }
    }
    over = true;
  };
  run(loop, main());
  EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
  EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
}

// --- IOContext's own -----------------------------------------------------------------------------

TEST(StopOnSignals, EndsARunAndPutsBackWhatWasInForce) {
  for (unsigned workers : {1u, 2u, 4u}) {
    for (int signal : {SIGINT, SIGTERM}) {
      IOContext ctx{{.workers = workers}};
      auto main = [&]() -> Task<> {
        EXPECT_NE(handler_of(signal), SIG_DFL);
        for (int i = 0; i < 10; ++i) ctx.schedule(parked());
        co_await yield();
        send(signal);
        co_await suspend_forever();
      };
      ctx.run(main());
      EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
      EXPECT_EQ(handler_of(SIGTERM), SIG_DFL);
    }
  }
}

TEST(StopOnSignals, StopsOneRunOnly) {
  IOContext ctx{{.workers = 1}};
  auto stopped = []() -> Task<> {
    send(SIGINT);
    co_await suspend_forever();
  };
  ctx.run(stopped());
  EXPECT_EQ(ctx.run(returns(7)), 7);
}

TEST(StopOnSignals, LeavesTheProgramsOwnHandlerAlone) {
  static volatile std::sig_atomic_t heard = 0;
  heard = 0;
  std::signal(SIGINT, [](int) { heard = 1; });
  IOContext ctx{{.workers = 1}};
  auto main = []() -> Task<int> {
    send(SIGINT);
    co_await sleep_for(1ms);
    co_return 1;
  };
  EXPECT_EQ(ctx.run(main()), 1);
  EXPECT_EQ(heard, 1);
  std::signal(SIGINT, SIG_DFL);
}

TEST(StopOnSignals, ASetTakesThemFromTheContext) {
  IOContext ctx{{.workers = 2}};
  auto main = []() -> Task<int> {
    SignalSet signals({SIGINT});
    send(SIGINT);
    int which = co_await signals.next();
    co_await sleep_for(1ms);  // a context that stops would cancel this
    co_return which;
  };
  EXPECT_EQ(ctx.run(main()), SIGINT);

  SignalSet before({SIGINT});  // and one that was there first
  auto second = [&]() -> Task<int> {
    send(SIGINT);
    int which = co_await before.next();
    co_await sleep_for(1ms);
    co_return which;
  };
  EXPECT_EQ(ctx.run(second()), SIGINT);
}

TEST(StopOnSignals, ASetThatIsGoneGivesThemBack) {
  auto stops = []() -> bool {
    IOContext ctx{{.workers = 1}};
    bool stopped = true;
    auto main = [&]() -> Task<> {
      send(SIGINT);
      co_await sleep_for(5s);
      stopped = false;
    };
    ctx.run(main());
    return stopped;
  };
  {
    SignalSet goes({SIGINT});
  }
  EXPECT_TRUE(stops());
  EXPECT_THROW(SignalSet({SIGINT, SIGKILL}), std::system_error);  // and one that never was
  EXPECT_TRUE(stops());
}

TEST(StopOnSignals, RunsLeaveNoDescriptorsBehind) {
  IOContext ctx{{.workers = 1}};
  ctx.run(returns(0));
  int lowest = ::dup(0);
  ::close(lowest);
  for (int i = 0; i < 20; ++i) ctx.run(returns(0));
  int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(lowest, after);
}

TEST(StopOnSignals, CanBeSwitchedOff) {
  IOContext ctx{{.workers = 1, .stop_on_signals = false}};
  auto main = []() -> Task<> {
    EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
    co_return;
  };
  ctx.run(main());
}

TEST(StopOnSignals, EveryContextThatRunsStops) {
  IOContext one{{.workers = 1}}, two{{.workers = 1}};
  std::latch listens(1);
  std::jthread other([&] {
    auto begun = [&]() -> Task<> {
      listens.count_down();
      co_await suspend_forever();
    };
    two.run(begun());
  });
  listens.wait();
  auto main = []() -> Task<> {
    send(SIGTERM);
    co_await suspend_forever();
  };
  one.run(main());
}

// In a process of its own: it dies.
TEST(StopOnSignalsDeathTest, ASecondInterruptKills) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto stubborn = [] {
    IOContext ctx{{.workers = 2}};
    auto main = []() -> Task<> {
      send(SIGINT);
      auto again = []() -> Task<> {
        co_await sleep_for(2ms);
        send(SIGTERM);  // asks for what is under way
        co_await sleep_for(2ms);
        send(SIGINT);
        co_await sleep_for(10s);
      };
      co_await noncancellable(again());
    };
    ctx.run(main());
  };
  EXPECT_EXIT(stubborn(), ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
