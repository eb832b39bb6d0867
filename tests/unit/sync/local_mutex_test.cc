// SPDX-License-Identifier: MIT
// LocalMutex is Mutex's code without its atomic operations (sync/sharing.h): here are the scenes that
// each state takes part in, and what only it refuses. mutex_test.cc has the rules one by one.
#include "weft/sync/local_mutex.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

template <class L>
struct LocalMutexTest : SyncTest<L> {
  LocalMutex mutex{"test"};

  Task<void> visit(std::string name) {
    ++this->asked;
    auto lock = co_await mutex.lock();
    this->events.push_back(name);
    co_await yield();
    this->events.push_back("/" + name);
  }
};
TYPED_TEST_SUITE(LocalMutexTest, LoopTypes);

TYPED_TEST(LocalMutexTest, ServesInTheOrderOfComing) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::optional<LocalMutexGuard> gate = this->mutex.try_lock();
    EXPECT_TRUE(gate.has_value());
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    StartedTask<void> c = co_await this->begin(scope, this->visit("c"));
    EXPECT_FALSE(this->mutex.try_lock().has_value());
    gate.reset();
    EXPECT_TRUE(this->mutex.is_locked()) << "it is the first one's at once";
    EXPECT_TRUE(this->events.empty()) << "nobody goes on inside of unlock()";
    co_await std::move(a);
    co_await std::move(b);
    co_await std::move(c);
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"a", "/a", "b", "/b", "c", "/c"}));
}

TYPED_TEST(LocalMutexTest, CancelledWhileWaitingItIsUnlinked) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::optional<LocalMutexGuard> gate = this->mutex.try_lock();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    gate.reset();
    co_await std::move(b);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"b", "/b"}));
  EXPECT_FALSE(this->mutex.is_locked());
}

TYPED_TEST(LocalMutexTest, CancelledWhileNotifiedItPassesTheLockOn) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::optional<LocalMutexGuard> gate = this->mutex.try_lock();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    StartedTask<void> b = co_await this->begin(scope, this->visit("b"));
    gate.reset();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    co_await std::move(b);
  };
  run_on(this->loop, root());
  EXPECT_EQ(this->events, (Events{"b", "/b"}));
  EXPECT_FALSE(this->mutex.is_locked());
}

TYPED_TEST(LocalMutexTest, CancelledWhileNotifiedTheLastOneUnlocksIt) {
  auto root = [&]() -> Task<void> {
    Scope& scope = co_await current_scope();
    std::optional<LocalMutexGuard> gate = this->mutex.try_lock();
    StartedTask<void> a = co_await this->begin(scope, this->visit("a"));
    gate.reset();
    a.cancel();
    Outcome<void> how = co_await a.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
}

TYPED_TEST(LocalMutexTest, LockRawIsUnlockedByHand) {
  auto root = [&]() -> Task<void> {
    co_await this->mutex.lock_raw();
    EXPECT_TRUE(this->mutex.is_locked());
    this->mutex.unlock();
    EXPECT_FALSE(this->mutex.is_locked());
  };
  run_on(this->loop, root());
}

Task<void> lock_once(LocalMutex& mutex) { auto lock = co_await mutex.lock(); }
Task<void> try_once(LocalMutex& mutex) {
  auto lock = mutex.try_lock();
  co_return;
}

TEST(LocalMutexDeathTest, IsTheFirstLoopsOnly) {
  auto misuse = [](Task<void> (*use)(LocalMutex&)) {
    LocalMutex mutex;
    VirtualLoop a, b;
    run(a, lock_once(mutex));
    run(b, use(mutex));
  };
  EXPECT_DEATH(misuse(lock_once), "LocalMutex::lock\\(\\) on loop .*, but loop .* uses it");
  EXPECT_DEATH(misuse(try_once), "LocalMutex::try_lock\\(\\) on loop .*, but loop .* uses it");
}

TEST(LocalMutexDeathTest, DestroyedWhileHeld) {
  auto misuse = [] {
    VirtualLoop loop;
    auto root = []() -> Task<void> {
      auto mutex = std::make_unique<LocalMutex>("short");
      auto lock = co_await mutex->lock();
      mutex.reset();
    };
    run(loop, root());
  };
  EXPECT_DEATH(misuse(), "LocalMutex 'short' is destroyed while it is held");
}

}  // namespace
