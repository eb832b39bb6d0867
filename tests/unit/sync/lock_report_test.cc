// SPDX-License-Identifier: MIT
// What the task tree says of those who wait for a Mutex.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/sync/mutex.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "no \"" << (part) << "\" in:\n" << (text)
#define EXPECT_HAS_NOT(text, part) \
  EXPECT_EQ((text).find(part), std::string::npos) << "\"" << (part) << "\" in:\n" << (text)

struct LockReport : ::testing::Test {
  VirtualLoop loop;
  VirtualLoop other{loop};
  Mutex mutex{"accounts"};
  Event leave{"leave"};
};

// Their names are looked for.
Task<void> long_holder(Mutex& mutex, Event& leave) {
  auto lock = co_await mutex.lock();
  co_await leave.wait();
}
Task<void> trying_holder(Mutex& mutex, Event& leave) {
  auto lock = mutex.try_lock();
  EXPECT_TRUE(lock);
  co_await leave.wait();
}
Task<void> raw_holder(Mutex& mutex, Event& leave) {
  co_await mutex.lock_raw();
  co_await leave.wait();
  mutex.unlock();
}
Task<void> moving_holder(Mutex& mutex, Event& leave) {
  MutexGuard first = co_await mutex.lock();
  MutexGuard second = std::move(first);
  co_await leave.wait();
}
Task<void> releasing_holder(Mutex& mutex, Event& leave) {
  MutexGuard lock = co_await mutex.lock();
  Mutex* owed = lock.release();
  co_await leave.wait();
  owed->unlock();
}
Task<void> visitor(Mutex& mutex) { auto lock = co_await mutex.lock(); }

Task<std::string> tree_here() {
  Scope& scope = co_await current_scope();
  co_return task_tree(scope);
}

// What is said while `holder` has it and one waits.
Task<std::string> tree_behind(Mutex& mutex, Event& leave, Task<void> holder) {
  std::string text;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(std::move(holder));
    co_await yields(2);
    n.start(visitor(mutex));
    co_await yields(2);
    text = task_tree(n);
    leave.set();
    co_return join;
  };
  co_await with_nursery(body);
  co_return text;
}

TEST_F(LockReport, SaysWhoHoldsItForHowLongAndWhoStandsWhere) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(long_holder(mutex, leave));
      co_await sleep_for(1s);
      for (int i = 0; i < 5; ++i) {
        n.start(visitor(mutex));
        co_await sleep_for(100ms);
      }
      co_await sleep_for(700ms);
      const std::string text = task_tree(n);
      EXPECT_HAS(text, "Mutex 'accounts' held by task in ");
      EXPECT_HAS(text, "long_holder(");
      EXPECT_HAS(text, ") at lock_report_test.cc:");
      // Nobody saw the lock(); the first that waited did so a second later.
      EXPECT_HAS(text, " for at least 1.2 s, 1st of 5\n");
      EXPECT_HAS(text, " for at least 1.2 s, 2nd of 5\n");
      EXPECT_HAS(text, " for at least 1.2 s, 3rd of 5\n");
      EXPECT_HAS(text, " for at least 1.2 s, 4th of 5\n");
      EXPECT_HAS(text, " for at least 1.2 s, 5th of 5\n");
      EXPECT_HAS_NOT(text, "on loop");
      leave.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

TEST_F(LockReport, AfterAHandOverTheTimeIsExact) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      std::optional<MutexGuard> first = mutex.try_lock();
      n.start(long_holder(mutex, leave));
      n.start(visitor(mutex));
      co_await sleep_for(10s);
      first.reset();
      co_await sleep_for(25ms);
      const std::string text = task_tree(n);
      EXPECT_HAS(text, "held by task in ");
      EXPECT_HAS(text, "long_holder(");
      EXPECT_HAS(text, " for 25 ms, 1st of 1\n");
      leave.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

TEST_F(LockReport, BetweenTheHandOverAndTheNextStepNobodyIsNamed) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      std::optional<MutexGuard> first = mutex.try_lock();
      n.start(visitor(mutex));
      n.start(visitor(mutex));
      co_await yields(3);
      first.reset();
      const std::string text = task_tree(n);
      EXPECT_HAS(text, "Mutex 'accounts', just locked\n");
      EXPECT_HAS(text,
                 "Mutex 'accounts' held by a task that was just given it for 0 ms, 1st of 1\n");
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

// A Condition locks for those who wait there, on the thread of whoever notifies: the last owner's name
// must not stand there until they go on.
TEST_F(LockReport, NobodyIsNamedEitherWhenAFreeOneIsLockedForSomebodyElsewhere) {
  constexpr std::uint32_t kBefore = 1, kNext = 2;
  detail::MutexCore core;
  EXPECT_TRUE(core.try_lock(kBefore));
  core.holder().set({&core, std::source_location::current()});
  EXPECT_TRUE(core.try_unlock(kBefore));
  detail::WaitNode next;
  next.home = kNext;
  EXPECT_TRUE(core.lock_or_wait(next, 0));
  const auto owner = core.standing_of(next).owner;
  EXPECT_EQ(owner.home, kNext);
  EXPECT_EQ(owner.who.task, nullptr);
  EXPECT_EQ(owner.who.at.line(), 0u);
}

TEST_F(LockReport, ACancelWhileNotifiedPassesTheNameOn) {
  auto root = [&]() -> Task<void> {
    std::optional<MutexGuard> first = mutex.try_lock();
    StartedTask<void> cancelled = visitor(mutex).start_in_current_scope();
    StartedTask<void> next = long_holder(mutex, leave).start_in_current_scope();
    StartedTask<void> last = visitor(mutex).start_in_current_scope();
    co_await yields(3);
    first.reset();
    cancelled.cancel();
    co_await yields(3);
    const std::string text = task_tree(co_await current_scope());
    EXPECT_HAS(text, "held by task in ");
    EXPECT_HAS(text, "long_holder(");
    EXPECT_HAS(text, ", 1st of 1\n");
    leave.set();
    static_cast<void>(co_await cancelled.outcome());
    co_await std::move(next);
    co_await std::move(last);
  };
  run(loop, root());
}

TEST_F(LockReport, WhenTheOnlyWaiterWasCancelledTheTimeIsCountedFromTheNext) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(long_holder(mutex, leave));
      co_await yields(2);
      static_cast<void>(co_await timeout(5s, mutex.lock()));
      n.start(visitor(mutex));
      co_await sleep_for(2s);
      EXPECT_HAS(task_tree(n), " for at least 2.0 s, 1st of 1\n");
      leave.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

TEST_F(LockReport, TryLockNamesItsHolder) {
  const std::string text = run(loop, tree_behind(mutex, leave, trying_holder(mutex, leave)));
  EXPECT_HAS(text, "held by task in ");
  EXPECT_HAS(text, "trying_holder(");
}

TEST_F(LockReport, AGuardThatWasMovedIsSomebodysAndThePlaceStays) {
  for (Task<void> (*holder)(Mutex&, Event&) : {moving_holder, releasing_holder, raw_holder}) {
    leave.reset();
    const std::string text = run(loop, tree_behind(mutex, leave, holder(mutex, leave)));
    EXPECT_HAS(text, "held by whoever has its guard, locked in ");
    EXPECT_HAS(text, "_holder(");
  }
}

TEST_F(LockReport, AHolderOnAnotherLoopIsNamedWithIt) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start_on(other, long_holder(mutex, leave));
      co_await sleep_for(1ms);
      n.start(visitor(mutex));
      co_await sleep_for(2s);
      const std::string text = task_tree(n);
      EXPECT_HAS(text, "held by task on loop " + std::to_string(other.home()) + " in ");
      EXPECT_HAS(text, " for at least 2.0 s, 1st of 1\n");
      leave.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

// The holder's memory is gone, and so is its loop: what is printed is a name.
TEST_F(LockReport, AHolderThatHasEndedCanBeNamed) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      auto forgets = [&]() -> Task<void> { co_await mutex.lock_raw(); };
      co_await forgets();
      n.start_on(other, visitor(mutex));
      co_await sleep_for(1ms);
      auto draw = [&]() -> Task<std::string> { co_return co_await tree_here(); };
      const std::string elsewhere = co_await on(other, draw());
      n.start(visitor(mutex));
      co_await sleep_for(1ms);
      EXPECT_HAS(task_tree(n), "held by whoever has its guard");
      EXPECT_HAS(task_tree(n), "2nd of 2");
      mutex.unlock();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

TEST_F(LockReport, OrdinalsAreEnglish) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(long_holder(mutex, leave));
      for (int i = 0; i < 23; ++i) n.start(visitor(mutex));
      co_await yields(3);
      const std::string text = task_tree(n);
      for (const char* each : {"1st", "2nd", "3rd", "4th", "10th", "11th", "12th", "13th", "20th",
                               "21st", "22nd", "23rd"}) {
        EXPECT_HAS(text, ", " + std::string(each) + " of 23\n");
      }
      leave.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

// --- A guard stays on its loop --------------------------------------------------------------------

#ifdef WEFT_AWAITABLE_STATE_DEBUG

Task<void> leaves_with_a_guard(Mutex& mutex, Executor& there) {
  auto lock = co_await mutex.lock();
  auto inner = [&]() -> Task<void> { co_await resume_on(there); };
  co_await inner();  // the same task
}

TEST_F(LockReport, ResumeOnIsRefusedWhileTheTaskHasAGuard) {
  auto root = [&]() -> Task<void> {
    std::string refused;
    try {
      co_await leaves_with_a_guard(mutex, other);
    } catch (const UsageError& error) {
      refused = error.what();
    }
    EXPECT_HAS(refused, "resume_on(): this task holds Mutex 'accounts', locked in ");
    EXPECT_HAS(refused, "leaves_with_a_guard(");
    EXPECT_HAS(refused, ") at lock_report_test.cc:");
    EXPECT_FALSE(mutex.is_locked());  // it unwound here, where it could
  };
  run(loop, root());
}

TEST_F(LockReport, ResumeOnIsRefusedAfterTryLockAndAfterAWait) {
  auto tries = [&]() -> Task<void> {
    auto lock = mutex.try_lock();
    co_await resume_on(other);
  };
  auto waits = [&]() -> Task<void> {
    auto lock = co_await mutex.lock();
    co_await resume_on(other);
  };
  auto root = [&]() -> Task<void> {
    int refused = 0;
    try {
      co_await tries();
    } catch (const UsageError&) {
      ++refused;
    }
    auto held = co_await mutex.lock();
    StartedTask<void> waiter = waits().start_in_current_scope();
    co_await yields(2);
    held.unlock();
    try {
      co_await std::move(waiter);
    } catch (const UsageError&) {
      ++refused;
    }
    EXPECT_EQ(refused, 2);
  };
  run(loop, root());
}

// A cancelled wait of a Condition has the lock again, and a timeout lets the task go on with it.
TEST_F(LockReport, ResumeOnIsRefusedAfterAConditionsWait) {
  Condition condition{"changed"};
  auto waits = [&](bool notified) -> Task<bool> {
    auto lock = co_await mutex.lock();
    auto waited = co_await timeout(1s, condition.wait(lock));
    EXPECT_EQ(waited.has_value(), notified);
    try {
      co_await resume_on(other);
    } catch (const UsageError&) {
      co_return true;
    }
    co_return false;
  };
  auto root = [&]() -> Task<void> {
    for (bool notified : {false, true}) {
      StartedTask<bool> refused = waits(notified).start_in_current_scope();
      co_await sleep_for(1ms);
      if (notified) condition.notify_one();
      EXPECT_TRUE(co_await std::move(refused));
    }
  };
  run(loop, root());
}

// As it has it alone; a guard that shares it may leave its loop.
TEST_F(LockReport, ResumeOnIsRefusedWhileTheTaskHasASharedMutexAlone) {
  SharedMutex shared{"routes"};
  auto leaves = [&]() -> Task<void> {
    auto lock = co_await shared.lock();
    co_await resume_on(other);
  };
  auto tries = [&]() -> Task<void> {
    auto lock = shared.try_lock();
    co_await resume_on(other);
  };
  auto waits = [&]() -> Task<void> {
    auto lock = co_await shared.lock();
    Condition condition;
    condition.notify_all();
    static_cast<void>(co_await timeout(1ms, condition.wait(lock)));
    co_await resume_on(other);
  };
  auto shares = [&]() -> Task<void> {
    auto lock = co_await shared.lock_shared();
    co_await resume_on(other);
    EXPECT_EQ(shared.shared_count(), 1u);
  };
  auto refused = [](Task<void> task) -> Task<std::string> {
    try {
      co_await std::move(task);
    } catch (const UsageError& error) {
      co_return error.what();
    }
    co_return "";
  };
  auto root = [&]() -> Task<void> {
    const std::string left = co_await refused(leaves());
    EXPECT_HAS(left, "resume_on(): this task holds SharedMutex 'routes', locked in ");
    const std::string tried = co_await refused(tries());
    EXPECT_HAS(tried, "SharedMutex 'routes'");
    const std::string waited = co_await refused(waits());
    EXPECT_HAS(waited, "SharedMutex 'routes'");
    EXPECT_FALSE(shared.is_locked());
    const std::string moved = co_await on(loop, refused(shares()));
    EXPECT_EQ(moved, "");
  };
  run(loop, root());
  EXPECT_EQ(shared.shared_count(), 0u);
}

TEST_F(LockReport, ResumeOnAsksOnlyForTheTasksOwnGuardsThatItStillHas) {
  auto root = [&]() -> Task<void> {
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      n.start(long_holder(mutex, leave));  // another task of this loop
      co_await yields(2);
      auto moves = [&]() -> Task<void> {
        Mutex own;
        {
          auto lock = co_await own.lock();
        }
        co_await resume_on(other);
        EXPECT_TRUE(other.is_current());
      };
      co_await moves().start_in_current_scope();
      leave.set();
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, root());
}

#endif

}  // namespace
