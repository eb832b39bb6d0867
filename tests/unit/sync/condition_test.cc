// SPDX-License-Identifier: MIT
#include "weft/sync/condition.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

struct ConditionTest : EachLoopTest {
  Mutex mutex{"lock"};
  Condition condition{"test"};
  Events events;
  int come = 0;

  // Waits for one notify, and holds the lock for some turns then.
  Task<void> visit(std::string name, int turns = 0) {
    auto lock = co_await mutex.lock();
    OnExit leave([this, name] {
      EXPECT_TRUE(mutex.is_locked());  // also when it is cancelled
      events.push_back("/" + name);
    });
    ++come;
    co_await condition.wait(lock);
    EXPECT_TRUE(lock);
    EXPECT_TRUE(mutex.is_locked());
    events.push_back(name);
    co_await yields(turns);
  }
  // Starts one, and waits until it waits.
  Task<StartedTask<void>> arrive(Scope& scope, Task<void> visitor) {
    StartedTask<void> started = std::move(visitor).start(scope);
    co_await until_come(come + 1);
    co_return started;
  }
  Task<StartedTask<void>> start_visit(Scope& scope, std::string name, int turns = 0) {
    return arrive(scope, visit(name, turns));
  }
  Task<void> until_come(int count) {
    while (come < count) co_await yield();
  }
};

// --- Waiting and notifying ----------------------------------------------------------------------

LOOP_TEST(ConditionTest, AWaitUnlocksAndHasTheLockAgainAfterIt) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a", 3);
    EXPECT_FALSE(mutex.is_locked());
    condition.notify_one();
    EXPECT_TRUE(mutex.is_locked());  // it is free, so it is a's at once
    EXPECT_TRUE(events.empty());     // and never inside of a notify
    co_await std::move(a);
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a", "/a"}));
}

// Who is notified with the lock held gets in line for it: nobody who comes later is before it.
LOOP_TEST(ConditionTest, WhoIsNotifiedStandsInTheLocksQueue) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    auto lock = co_await mutex.lock();
    condition.notify_one();
    auto late = [&]() -> Task<void> {
      auto late_lock = co_await mutex.lock();
      events.push_back("late");
    };
    StartedTask<void> b = late().start(scope);
    co_await yields(5);
    EXPECT_TRUE(events.empty());
    lock.unlock();
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a", "/a", "late"}));
}

LOOP_TEST(ConditionTest, NotifyOneWakesWhoHasWaitedLongest) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    StartedTask<void> b = co_await start_visit(scope, "b");
    StartedTask<void> c = co_await start_visit(scope, "c");
    condition.notify_one();
    co_await std::move(a);
    co_await yields(5);
    EXPECT_EQ(events, (Events{"a", "/a"}));
    condition.notify_one();
    condition.notify_one();
    co_await std::move(c);
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"a", "/a", "b", "/b", "c", "/c"}));
}

LOOP_TEST(ConditionTest, NotifyAllWakesThoseWhoWaitOneAfterTheOther) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::vector<StartedTask<void>> all;
    for (const char* name : {"a", "b", "c"}) {
      all.push_back(co_await start_visit(scope, name, 2));
    }
    condition.notify_all();
    // Who waits after it is not meant.
    StartedTask<void> late = visit("late").start(scope);
    for (auto& each : all) co_await std::move(each);
    co_await until_come(4);
    co_await yields(5);
    EXPECT_EQ(events, (Events{"a", "/a", "b", "/b", "c", "/c"}));
    condition.notify_all();
    co_await std::move(late);
  };
  run_on(loop, root());
}

LOOP_TEST(ConditionTest, ANotifyWithoutAWaiterIsNotKept) {
  auto root = [&]() -> Task<void> {
    condition.notify_one();
    condition.notify_all();
    auto lock = co_await mutex.lock();
    auto waited = co_await timeout(1ms, condition.wait(lock));
    EXPECT_FALSE(waited);
    EXPECT_TRUE(mutex.is_locked());  // a timeout has the lock again
  };
  run_on(loop, root());
  EXPECT_FALSE(mutex.is_locked());
}

LOOP_TEST(ConditionTest, TwoTakeTurnsByNotifyingEachOther) {
  int turn = 0;
  auto player = [&](int self, int rounds) -> Task<void> {
    auto lock = co_await mutex.lock();
    for (int i = 0; i < rounds; ++i) {
      while (turn != self) co_await condition.wait(lock);
      turn = 1 - self;
      condition.notify_one();
    }
  };
  auto root = [&]() -> Task<void> { co_await all_of(player(0, 100), player(1, 100)); };
  run_on(loop, root());
  EXPECT_EQ(turn, 0);
}

// --- Predicates ---------------------------------------------------------------------------------

LOOP_TEST(ConditionTest, AWaitForWhatIsTrueDoesNotWait) {
  auto root = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    co_await condition.wait(lock, [] { return true; });
    EXPECT_TRUE(mutex.is_locked());
  };
  run_on(loop, root());
}

LOOP_TEST(ConditionTest, AWaitForAPredicateGoesOnWhenItIsTrue) {
  int value = 0;
  int asked = 0;
  auto consumer = [&]() -> Task<void> {
    auto is_three = [&] {
      EXPECT_TRUE(mutex.is_locked());
      ++asked;
      return value == 3;
    };
    auto lock = co_await mutex.lock();
    ++come;
    co_await condition.wait(lock, is_three);
    EXPECT_EQ(value, 3);
    EXPECT_TRUE(mutex.is_locked());
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> waits = co_await arrive(scope, consumer());
    for (int i = 0; i < 3; ++i) {
      {
        auto lock = co_await mutex.lock();
        ++value;
        condition.notify_one();
      }
      while (asked < i + 2) co_await yield();  // once for each notify, and before
      co_await yields(3);
      EXPECT_EQ(asked, i + 2);
    }
    co_await std::move(waits);
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
}

LOOP_TEST(ConditionTest, WhatAPredicateThrowsComesOutWithTheLockHeld) {
  bool now = false;
  auto consumer = [&](bool at_once) -> Task<void> {
    auto fails = [&]() -> bool {
      if (now || at_once) throw std::runtime_error("on purpose");
      return false;
    };
    auto lock = co_await mutex.lock();
    bool caught = false;
    ++come;
    try {
      co_await condition.wait(lock, fails);
    } catch (const std::runtime_error&) {
      caught = true;
    }
    EXPECT_TRUE(caught);
    EXPECT_TRUE(lock);
    EXPECT_TRUE(mutex.is_locked());
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    co_await consumer(true);
    StartedTask<void> waits = co_await arrive(scope, consumer(false));
    now = true;
    condition.notify_one();
    co_await std::move(waits);
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
}

// A named predicate that cannot be copied is referred to.
LOOP_TEST(ConditionTest, APredicateMayBeOneOfAKind) {
  auto root = [&]() -> Task<void> {
    auto ready = std::make_unique<bool>(false);
    auto predicate = [owned = std::move(ready)] { return std::exchange(*owned, true); };
    auto lock = co_await mutex.lock();
    auto notifies = [&]() -> Task<void> {
      co_await yields(2);
      condition.notify_one();
    };
    co_await all_of(condition.wait(lock, predicate), notifies());
    EXPECT_TRUE(mutex.is_locked());
  };
  run_on(loop, root());
}

// --- Cancellation -------------------------------------------------------------------------------

LOOP_TEST(ConditionTest, ACancelledWaitHasTheLockAgainBeforeItUnwinds) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_EQ(events, (Events{"/a"}));  // where it looks at the lock
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
}

LOOP_TEST(ConditionTest, ACancelledWaitWaitsForALockThatIsTaken) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    auto lock = co_await mutex.lock();
    a.cancel();
    co_await yields(5);
    EXPECT_TRUE(events.empty());  // it cannot unwind yet
    lock.unlock();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"/a"}));
}

// It was chosen and waits for the lock.
LOOP_TEST(ConditionTest, ACancelAfterNotifyOnePassesItOn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    StartedTask<void> b = co_await start_visit(scope, "b");
    StartedTask<void> c = co_await start_visit(scope, "c");
    auto lock = co_await mutex.lock();
    condition.notify_one();
    a.cancel();
    co_await yields(5);
    lock.unlock();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
    co_await yields(5);
    EXPECT_EQ(events, (Events{"/a", "b", "/b"}));  // one, and not c
    condition.notify_one();
    co_await std::move(c);
  };
  run_on(loop, root());
}

// It was chosen and has the lock, but has not gone on.
LOOP_TEST(ConditionTest, ACancelAfterItHasTheLockPassesTheNotifyOn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    StartedTask<void> b = co_await start_visit(scope, "b");
    condition.notify_one();
    EXPECT_TRUE(mutex.is_locked());
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"/a", "b", "/b"}));
  EXPECT_FALSE(mutex.is_locked());
}

// Those who wait since are not told of it.
LOOP_TEST(ConditionTest, ACancelAfterNotifyAllPassesNothingOn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    auto lock = co_await mutex.lock();
    condition.notify_all();
    lock.unlock();
    lock = co_await mutex.lock();  // a has been in, and is gone
    lock.unlock();
    StartedTask<void> b = co_await start_visit(scope, "b");
    lock = co_await mutex.lock();
    condition.notify_all();
    StartedTask<void> late = visit("late").start(scope);
    co_await yields(2);
    b.cancel();
    lock.unlock();
    Outcome<void> how = co_await b.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await until_come(3);
    co_await yields(5);
    EXPECT_EQ(events, (Events{"a", "/a", "/b"}));
    condition.notify_one();
    co_await std::move(late);
    co_await std::move(a);
  };
  run_on(loop, root());
}

LOOP_TEST(ConditionTest, CancelOfEveryoneLosesNothing) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 20; ++i) n.start(visit("x"));
      co_await until_come(20);
      for (int i = 0; i < 7; ++i) condition.notify_one();
      co_return cancel;
    };
    co_await with_nursery(body);
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
  EXPECT_EQ(events, Events(20, "/x"));
}

LOOP_TEST(ConditionTest, ATaskThatIsCancelledAlreadyDoesNotUnlock) {
  auto root = [&]() -> Task<void> {
    auto body = [&]() -> Task<void> {
      auto lock = co_await mutex.lock();
      Scope& scope = co_await current_scope();
      OnExit leave([&] { EXPECT_TRUE(mutex.is_locked()); });
      scope.cancel();
      co_await condition.wait(lock);
      ADD_FAILURE() << "went on";
    };
    StartedTask<void> started = body().start_in_current_scope();
    Outcome<void> how = co_await started.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(mutex.is_locked());
  };
  run_on(loop, root());
}

LOOP_TEST(ConditionTest, AnIgnoredCancellationWaits) {
  auto root = [&]() -> Task<void> {
    auto body = [&]() -> Task<void> {
      auto guard = co_await ignore_cancellation();
      auto lock = co_await mutex.lock();
      ++come;
      co_await condition.wait(lock);
      events.push_back("notified");
    };
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await arrive(scope, body());
    a.cancel();
    co_await yields(3);
    EXPECT_TRUE(events.empty());
    condition.notify_one();
    static_cast<void>(co_await a.outcome());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"notified"}));
}

// A predicate is not asked for a wait that was cancelled.
LOOP_TEST(ConditionTest, ACancelledWaitForAPredicateEndsWhetherItIsTrueOrNot) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    bool value = false;
    auto body = [&]() -> Task<void> {
      auto is_true = [&] { return value; };
      auto lock = co_await mutex.lock();
      OnExit leave([&] { EXPECT_TRUE(mutex.is_locked()); });
      ++come;
      co_await condition.wait(lock, is_true);
      events.push_back("went on");
    };
    for (bool becomes : {false, true}) {
      StartedTask<void> first = co_await arrive(scope, body());
      StartedTask<void> second = co_await arrive(scope, body());
      auto lock = co_await mutex.lock();
      value = becomes;
      condition.notify_one();
      first.cancel();
      lock.unlock();
      Outcome<void> how = co_await first.outcome();
      EXPECT_TRUE(how.is_cancelled());
      if (!becomes) second.cancel();
      how = co_await second.outcome();
      EXPECT_EQ(how.is_cancelled(), !becomes);
    }
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"went on"}));
}

// --- With others --------------------------------------------------------------------------------

LOOP_TEST(ConditionTest, WorksWithASharedMutexThatIsHeldAlone) {
  SharedMutex shared("routes");
  bool ready = false;
  auto consumer = [&]() -> Task<void> {
    auto is_ready = [&] { return ready; };
    auto lock = co_await shared.lock();
    ++come;
    co_await condition.wait(lock, is_ready);
    EXPECT_TRUE(shared.is_locked());
    events.push_back("went on");
  };
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> waits = co_await arrive(scope, consumer());
    auto look = co_await shared.lock_shared();
    condition.notify_one();
    EXPECT_FALSE(shared.try_lock_shared());  // it stands in line, and wants it alone
    look.unlock();
    StartedTask<void> cancelled = co_await arrive(scope, consumer());
    cancelled.cancel();
    Outcome<void> how = co_await cancelled.outcome();
    EXPECT_TRUE(how.is_cancelled());
    auto lock = co_await shared.lock();
    ready = true;
    condition.notify_all();
    lock.unlock();
    co_await std::move(waits);
    EXPECT_FALSE(shared.is_locked());
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"went on"}));
}

// The loser of any_of() has the lock again before any_of() goes on.
LOOP_TEST(ConditionTest, WaitsBesideOthers) {
  auto root = [&]() -> Task<void> {
    Event stop;
    auto sets = [&]() -> Task<void> {
      auto lock = co_await mutex.lock();
      stop.set();
      co_await yields(3);
      events.push_back("unlocks");
    };
    auto lock = co_await mutex.lock();
    StartedTask<void> other = sets().start_in_current_scope();
    auto [notified, stopped] = co_await any_of(condition.wait(lock), stop.wait());
    events.push_back("goes on");
    EXPECT_FALSE(notified);
    EXPECT_TRUE(stopped);
    EXPECT_TRUE(mutex.is_locked());
    co_await std::move(other);
  };
  run_on(loop, root());
  EXPECT_EQ(events, (Events{"unlocks", "goes on"}));
}

LOOP_TEST(ConditionTest, TheTreeSaysWhatIsWaitedFor) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    StartedTask<void> a = co_await start_visit(scope, "a");
    StartedTask<void> b = co_await start_visit(scope, "b");
    auto lock = co_await mutex.lock();
    const std::string tree = task_tree(scope);
    EXPECT_NE(tree.find("Condition 'test', 1 of 2 waiting"), std::string::npos) << tree;
    EXPECT_NE(tree.find("Condition 'test', 2 of 2 waiting"), std::string::npos) << tree;
    condition.notify_one();
    const std::string then = task_tree(scope);
    EXPECT_NE(then.find("Mutex 'lock' held by"), std::string::npos) << then;
    EXPECT_NE(then.find("Condition 'test', 1 of 1 waiting"), std::string::npos) << then;
    condition.notify_one();
    lock.unlock();
    co_await std::move(a);
    co_await std::move(b);
  };
  run_on(loop, root());
}

}  // namespace
