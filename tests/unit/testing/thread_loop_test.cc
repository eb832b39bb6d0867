// SPDX-License-Identifier: MIT
#include "weft/testing/thread_loop.h"

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;

// Work that another thread sends to a loop.
struct Note : Runnable {
  Note() : Runnable(&call) {}
  static void call(Runnable& work) noexcept {
    auto& self = static_cast<Note&>(work);
    self.where.set_value(Executor::current_or_null());
  }
  std::promise<Executor*> where;
};

TEST(ThreadLoop, APostFromAnotherThreadWakesALoopThatSleeps) {
  LoopThread there;
  for (int i = 0; i < 20; ++i) {
    Note note;
    EXPECT_TRUE(there.executor().post(note));
    EXPECT_EQ(note.where.get_future().get(), &there.executor());
  }
}

TEST(ThreadLoop, PostsOfOneThreadRunInTheirOrder) {
  struct Numbered : Runnable {
    Numbered() : Runnable(&call) {}
    static void call(Runnable& work) noexcept {
      auto& self = static_cast<Numbered&>(work);
      self.seen->push_back(self.number);
      if (self.last) self.last->set_value();
    }
    std::vector<int>* seen = nullptr;
    int number = 0;
    std::promise<void>* last = nullptr;
  };
  constexpr int kPosts = 100;
  std::vector<int> seen;
  std::promise<void> all;
  std::vector<Numbered> posts(kPosts);
  LoopThread there;
  for (int i = 0; i < kPosts; ++i) {
    posts[i].seen = &seen;
    posts[i].number = i;
    if (i == kPosts - 1) posts[i].last = &all;
    EXPECT_TRUE(there.executor().post(posts[i]));
  }
  all.get_future().wait();
  ASSERT_EQ(seen.size(), std::size_t{kPosts});
  for (int i = 0; i < kPosts; ++i) EXPECT_EQ(seen[i], i);
}

TEST(ThreadLoop, RunsOneTreeAfterTheOther) {
  ThreadLoop loop;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run_on(loop, returns(i)), i);
  EXPECT_FALSE(loop.is_running());
  EXPECT_EQ(loop.strand_count(), 0u);
}

TEST(LoopThread, StartsTasksFromAnyThread) {
  std::atomic<int> ran = 0;
  {
    LoopThread there;
    auto child = [&]() -> Task<void> {
      EXPECT_EQ(Executor::current_or_null(), &there.executor());
      co_await yield();
      ++ran;
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&child, &there] {
        std::promise<void> done;
        auto last = [&]() -> Task<void> {
          co_await child();
          done.set_value();
        };
        there.lease().start(child());
        there.lease().start(last());
        done.get_future().wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(ran, 8);
}

TEST(LoopThread, ItsEndCancelsWhatStillRunsAndWaitsForIt) {
  std::atomic<bool> destroyed = false;
  {
    LoopThread there;
    std::promise<void> parked_there;
    auto child = [&]() -> Task<void> {
      OnExit note([&destroyed] { destroyed = true; });
      parked_there.set_value();
      co_await suspend_forever();
    };
    there.lease().start(child());
    parked_there.get_future().wait();
    EXPECT_FALSE(destroyed);
  }
  EXPECT_TRUE(destroyed);
}

TEST(LoopThread, AnErrorStopsTheOthersAndIsLogged) {
  LogCapture log;
  {
    LoopThread there;
    std::promise<void> stopped;
    auto bystander = [&]() -> Task<void> {
      OnExit note([&stopped] { stopped.set_value(); });
      co_await suspend_forever();
    };
    there.lease().start(bystander());
    there.lease().start(throws_after(1, "over there"));
    stopped.get_future().wait();
  }
  std::vector<std::string> lines = log.take();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("over there"), std::string::npos) << lines[0];
}

TEST(LoopThread, AHandleThatOutlivesItsLoopIsHarmless) {
  StartedTask<int> finished;
  StartedTask<void> cancelled;
  CancelHandle handle;
  {
    LoopThread there;
    finished = returns(3).start_with_parent_scope(there.lease());
    cancelled = parked().start_with_parent_scope(there.lease());
    handle = cancelled.cancel_handle();
  }
  EXPECT_TRUE(finished.is_done());
  EXPECT_TRUE(cancelled.is_done());
  handle.cancel();
  cancelled.cancel();
  ThreadLoop loop;
  auto read = [&]() -> Task<int> {
    Outcome<void> how = co_await cancelled.outcome();
    EXPECT_TRUE(how.is_cancelled());
    if (how.is_cancelled()) {
      EXPECT_EQ(&how.reason(), &reasons::loop_stopped);
    }
    co_return co_await std::move(finished);
  };
  EXPECT_EQ(run_on(loop, read()), 3);
}

TEST(LoopThread, TwoLoopsStartChildrenInEachOther) {
  LoopThread a;
  LoopThread b;
  ThreadLoop loop;
  auto leaf = []() -> Task<Executor*> { co_return Executor::current_or_null(); };
  auto middle = [&]() -> Task<Executor*> {
    StartedTask<Executor*> s = leaf().start_with_parent_scope(b.lease());
    co_return co_await std::move(s);
  };
  auto root = [&]() -> Task<Executor*> {
    StartedTask<Executor*> s = middle().start_with_parent_scope(a.lease());
    co_return co_await std::move(s);
  };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run_on(loop, root()), &b.executor());
}

TEST(LoopThread, OneTooManyThrowsWhereItIsMade) {
  std::vector<std::unique_ptr<ThreadLoop>> loops;
  auto fill = [&] {
    for (detail::HomeIndex i = 0; i <= detail::kLoopsMax; ++i)
      loops.push_back(std::make_unique<ThreadLoop>());
  };
  EXPECT_THROW(fill(), UsageError);
  EXPECT_THROW(LoopThread(), UsageError);
  loops.pop_back();
  LoopThread fits;
}

}  // namespace
