// SPDX-License-Identifier: MIT
// What an adversary found in the runtime, one test each.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;

Task<void> nothing() { co_return; }

// --- The end of a run() -------------------------------------------------------------------------

TEST(RuntimeReview, AGuestMayScheduleWhileItsContextLeaves) {
  IOContext ctx{{.workers = 2}};
  EventLoop other;
  std::atomic<bool> there = false, main_over = false;
  auto guest = [&]() -> Task<void> {
    there = true;
    while (!main_over) co_await sleep_for(100us);
    co_await sleep_for(2ms);
    auto body = [](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 10; ++i) n.schedule(nothing());
      co_return join;
    };
    co_await with_nursery(body);
  };
  std::thread visitor;
  auto main = [&]() -> Task<void> {
    visitor = std::thread([&] { run(other, on(ctx.loop(0), guest())); });
    while (!there) co_await sleep_for(100us);
    main_over = true;
  };
  ctx.run(main());
  visitor.join();
}

// A guest holds the context open after its main has ended: what is scheduled then is not for this run().
TEST(RuntimeReview, WhatIsScheduledWhileAContextLeavesIsForTheNextRun) {
  IOContext ctx{{.workers = 2}};
  EventLoop other;
  std::atomic<bool> there = false, main_over = false;
  std::atomic<int> ran = 0;
  auto count = [&]() -> Task<void> {
    ++ran;
    co_return;
  };
  auto guest = [&]() -> Task<void> {
    there = true;
    while (!main_over) co_await sleep_for(100us);
    // On worker 0, which decides to leave between two of its turns.
    for (int turn = 0; turn < 10; ++turn) co_await sleep_for(100us);
    ctx.schedule(count);
    std::thread([&] { ctx.schedule(count); }).join();
    for (int turn = 0; turn < 10; ++turn) co_await sleep_for(100us);
    EXPECT_EQ(ran, 0);
  };
  std::thread visitor;
  auto main = [&]() -> Task<void> {
    visitor = std::thread([&] { run(other, on(ctx.loop(0), guest())); });
    while (!there) co_await sleep_for(100us);
    main_over = true;
  };
  ctx.run(main());
  visitor.join();
  EXPECT_EQ(ran, 0);
  ctx.run(nothing());
  EXPECT_EQ(ran, 2);
}

TEST(RuntimeReview, SchedulingWhileRunsComeAndGoLosesNothing) {
  constexpr int kAheadMax = 1000;  // what is left for the next run() takes time there
  std::atomic<int> given = 0, ran = 0;
  auto count = [&]() -> Task<void> {
    ++ran;
    co_return;
  };
  IOContext ctx{{.workers = 3}};
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over) {
      if (given - ran > kAheadMax) {
        std::this_thread::yield();
        continue;
      }
      ctx.schedule(count);
      ++given;
    }
  });
  for (int i = 0; i < 300; ++i) ctx.run(nothing());
  over = true;
  other.join();
  ctx.run(nothing());
  EXPECT_EQ(ran, given);
}

TEST(RuntimeReview, TheStopOfAnotherContextIsNotOurs) {
  IOContext ours{{.workers = 1}}, theirs{{.workers = 1}};
  std::atomic<bool> ready = false, arrived = false;
  std::thread other([&] {
    auto main = [&]() -> Task<void> {
      ready = true;
      while (!arrived) co_await sleep_for(100us);
      theirs.stop();
    };
    theirs.run(main());
  });
  while (!ready) std::this_thread::yield();
  auto stay = [&]() -> Task<void> {
    arrived = true;
    co_await suspend_forever();
  };
  EXPECT_THROW(ours.run(on(theirs.loop(0), stay())), TaskCancelled);
  other.join();
}

TEST(RuntimeReview, AGuestOfAContextThatNeverRanFindsNoContext) {
  EventLoop home;
  auto ctx = std::make_unique<IOContext>(IOContextOptions{.workers = 1});
  std::atomic<bool> sent = false;
  std::thread end([&] {
    while (!sent) std::this_thread::yield();
    ctx.reset();
  });
  auto guest = []() -> Task<void> {
    EXPECT_EQ(IOContext::current_or_null(), nullptr);
    co_return;
  };
  auto mark = [&]() -> Task<void> {
    sent = true;
    co_return;
  };
  try {
    run(home, all_of(on(ctx->loop(0), guest()), mark()));  // begun in this order
  } catch (const TaskCancelled&) {                         // the loop's end cancels its guests
  }
  end.join();
}

TEST(RuntimeReview, AWorkersLoopIsNotRunByItself) {
  IOContext ctx{{.workers = 1}};
  ctx.schedule(nothing());
  EXPECT_THROW(run(ctx.loop(0), nothing()), UsageError);
  ctx.run(nothing());
}

TEST(RuntimeReview, ALimitThatIsNeverDoesNotOverflow) {
  test::LogCapture log;
  IOContext ctx{{.workers = 1,
                 .blocking = {.idle = std::chrono::milliseconds::max()},
                 .shutdown_warn = std::chrono::nanoseconds::max()}};
  auto main = [&]() -> Task<void> {
    auto work = [] {};
    for (int i = 0; i < 20; ++i) co_await blocking(work);
    co_await sleep_for(5ms);
    EXPECT_GE(BlockingPool::current().statistics().threads, 1u);
    ctx.stop();
    co_await yield();
  };
  ctx.run(main());
  for (const std::string& line : log.take()) {
    EXPECT_EQ(line.find("stop() waits"), std::string::npos) << line;
  }
}

// --- Workers ------------------------------------------------------------------------------------

// While it lives, the threads that are begun share one processor, this one's.
class OneProcessor {
 public:
  OneProcessor() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

// A worker is woken to search, and finds something else to do that never ends. Both reach it before
// it is awake: on one processor a thread that is SCHED_BATCH does not interrupt the one that wakes it.
TEST(RuntimeReview, AWorkerThatIsBusyDoesNotCountAsSearching) {
  OneProcessor together;
  IOContext ctx{{.workers = 3}};
  std::atomic<bool> ran = false, over = false;
  auto be_patient = []() -> Task<void> {
    sched_param none{};
    EXPECT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    co_return;
  };
  auto fresh = [&]() -> Task<void> {
    ran = true;
    co_return;
  };
  auto busy = [&]() -> Task<void> {
    while (!over) co_await yield();
  };
  auto main = [&]() -> Task<void> {
    for (std::size_t worker : {1, 2}) co_await on(ctx.loop(worker), be_patient());
    for (std::size_t round = 0; round < 10; ++round) {
      over = ran = false;
      EventLoop& last_awake = ctx.loop(1 + round % 2);
      co_await sleep_for(1ms);  // both park
      co_await on(last_awake, nothing());
      co_await sleep_for(1ms);  // and this one parks last: it will be woken first
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.schedule(fresh);
        n.start_on(last_awake, busy());
        auto until = std::chrono::steady_clock::now() + 5s;
        while (!ran && std::chrono::steady_clock::now() < until) {
          std::this_thread::sleep_for(50us);
        }
        EXPECT_TRUE(ran) << "round " << round;
        over = true;
        co_return join;
      };
      co_await with_nursery(body);
    }
  };
  ctx.run(main());
}

TEST(RuntimeReview, PinnedWorkersHaveAProcessorEach) {
  if (std::thread::hardware_concurrency() < 2) return;
  IOContext ctx{{.workers = 2, .pin_threads = true}};
  auto processors = []() -> Task<cpu_set_t> {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    co_return set;
  };
  auto main = [&]() -> Task<void> {
    cpu_set_t first = co_await processors();
    cpu_set_t second = co_await on(ctx.loop(1), processors());
    EXPECT_EQ(CPU_COUNT(&first), 1);
    EXPECT_EQ(CPU_COUNT(&second), 1);
    EXPECT_FALSE(CPU_EQUAL(&first, &second));
    auto of_pool = [] {
      cpu_set_t set;
      sched_getaffinity(0, sizeof set, &set);
      return CPU_COUNT(&set);
    };
    EXPECT_GT(co_await blocking(of_pool), 1);
  };
  ctx.run(main());
}

// --- Loops --------------------------------------------------------------------------------------

// Posts that always come while it spins. How many come before the kernel is asked has a bound.
TEST(RuntimeReview, SpinningDoesNotForgetTheKernel) {
  if (std::thread::hardware_concurrency() < 2) return;
  constexpr std::uint64_t kPostsAllowed = 5000;  // kTurnsPerPoll is 64
  IOContext ctx{{.workers = 2, .spin = 50ms}};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> posts = 0, at_write = 0;
  std::function<void()> ping = [&] {
    ++posts;
    if (!over) ctx.loop(1).post([&] { ctx.loop(0).post(ping); });
  };
  auto main = [&]() -> Task<void> {
    Descriptor in{UniqueFd(ends[0])};
    ping();
    std::atomic<int> wanted = 0;
    std::thread writer([&] {
      for (int i = 1; i <= 20; ++i) {
        while (wanted < i) std::this_thread::yield();
        std::this_thread::sleep_for(1ms);
        at_write = posts.load();
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
      }
    });
    for (int i = 0; i < 20; ++i) {
      std::byte byte[1];
      ++wanted;
      EXPECT_TRUE(co_await in.read(std::span(byte)));
      EXPECT_LT(posts - at_write, kPostsAllowed);
    }
    writer.join();
    over = true;
    co_await sleep_for(5ms);  // the last ping is on its way
  };
  ctx.run(main());
  ::close(ends[1]);
}

// The same with what only enters the loop's books: of children that end elsewhere nothing runs here.
TEST(RuntimeReview, SpinningForBookkeepingDoesNotForgetTheKernel) {
  if (std::thread::hardware_concurrency() < 2) return;
  constexpr std::uint64_t kTurnsAllowed = 100;  // kTurnsPerPoll is 64
  constexpr int kChildren = 2000;
  IOContext ctx{{.workers = 2, .spin = 50ms}};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd out(ends[1]);
  auto end_after = [](int turns) -> Task<void> {  // one after the other, so that each is a post
    for (; turns > 0; --turns) co_await yield();
  };
  auto main = [&]() -> Task<void> {
    Descriptor in{UniqueFd(ends[0])};
    std::uint64_t at_write = 0, at_read = 0;
    auto reads = [&]() -> Task<void> {
      std::byte byte[1];
      EXPECT_TRUE(co_await in.read(std::span(byte)));
      at_read = ctx.loop(0).statistics().turns;
    };
    auto write = [&] {
      at_write = ctx.loop(0).statistics().turns;
      EXPECT_EQ(::write(out.get(), "x", 1), 1);
    };
    auto write_after = [&](int turns) -> Task<void> {  // a timer would be a reason not to spin
      co_await end_after(turns);
      EXPECT_TRUE(ctx.loop(0).post(write));
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < kChildren; ++i) n.start_on(ctx.loop(1), end_after(i));
      n.start(reads);
      n.start_on(ctx.loop(1), write_after(kChildren / 2));
      co_return join;
    };
    for (int round = 0; round < 10; ++round) {  // it spins in most of them
      co_await with_nursery(body);
      EXPECT_LT(at_read - at_write, kTurnsAllowed) << round;
    }
  };
  ctx.run(main());
}

TEST(RuntimeReview, ADescriptorDroppedElsewhereIsClosedAlsoByABusyLoop) {
  EventLoop loop;
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  UniqueFd peer(pair[1]);
  auto main = [&]() -> Task<void> {
    Descriptor mine{UniqueFd(pair[0])};
    std::byte byte[1];
    auto silent = mine.read(std::span(byte));
    EXPECT_FALSE(co_await timeout(1ms, std::move(silent)));
    std::thread([moved = std::move(mine)] {}).join();
    auto until = std::chrono::steady_clock::now() + 5s;
    char end;
    ssize_t seen = -1;
    while (seen != 0 && std::chrono::steady_clock::now() < until) {
      co_await yield();
      seen = ::recv(peer.get(), &end, 1, MSG_DONTWAIT);
    }
    EXPECT_EQ(seen, 0) << "the peer sees the end";
  };
  run(loop, main());
}

TEST(RuntimeReview, ALateWakeFindsNobodyToWake) {
  for (int i = 0; i < 300; ++i) {
    EventLoop loop;
    auto main = [&]() -> Task<void> {
      auto work = [] {};
      co_await all_of(blocking(work), sleep_for(std::chrono::microseconds(i % 50)));
    };
    run(loop, main());
  }
}

// While it lives, `spare` numbers are free for new descriptors.
class SpareDescriptors {
 public:
  explicit SpareDescriptors(rlim_t spare) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlim_t limit = 0;
    for (rlim_t found = 0; found < spare || is_open(limit); ++limit) found += !is_open(limit);
    rlimit few{limit, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~SpareDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

 private:
  static bool is_open(rlim_t number) { return ::fcntl(static_cast<int>(number), F_GETFD) >= 0; }
  rlimit before_;
};

// Returns: whether it ran.
template <class Run>
bool runs_with(rlim_t spare, Run try_to_run) {
  SpareDescriptors few(spare);
  try {
    try_to_run();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

TEST(RuntimeReview, OutOfDescriptorsIsAnError) {
  auto one_loop = [] {
    EventLoop loop{{.driver = Driver::epoll}};
    EXPECT_EQ(run(loop, just(1)), 1);
  };
  auto three_workers = [] {
    IOContext ctx{{.workers = 3, .driver = Driver::epoll}};
    ctx.run(nothing());
  };
  three_workers();  // what is kept for signals is there from now on
  // A loop needs two.
  for (rlim_t spare = 0; spare < 4; ++spare) {
    EXPECT_EQ(runs_with(spare, one_loop), spare >= 2) << spare;
  }
  for (rlim_t spare = 0; spare < 8; ++spare) {
    EXPECT_EQ(runs_with(spare, three_workers), spare >= 6) << spare;
  }
}

TEST(RuntimeReview, ALoopThatEndsNeedsNoDescriptors) {
  EventLoop home;
  auto other = std::make_unique<EventLoop>();
  std::thread end;
  auto guest = []() -> Task<void> { co_await suspend_forever(); };
  auto destroy = [&]() -> Task<void> {
    end = std::thread([&] {
      SpareDescriptors none(0);
      other.reset();
    });
    co_return;
  };
  // Begun in this order: the guest is on its way when its loop ends, which cancels it.
  EXPECT_THROW(run(home, all_of(on(*other, guest()), destroy())), TaskCancelled);
  end.join();
}

// --- Descriptors --------------------------------------------------------------------------------

class ReviewOn : public ::testing::TestWithParam<Driver> {
 protected:
  EventLoop loop{{.driver = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Drivers, ReviewOn,
                         ::testing::Values(Driver::io_uring, Driver::epoll, Driver::poll),
                         [](auto& info) { return std::string(to_string(info.param)); });

// A short read says "empty" of a stream of bytes only.
TEST_P(ReviewOn, EveryDatagramIsRead) {
  for (int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
    auto main = [&]() -> Task<void> {
      Descriptor in{UniqueFd(pair[0])}, out{UniqueFd(pair[1])};
      for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(co_await out.write(std::as_bytes(std::span("ab", 2))));
      }
      std::byte buffer[64];
      for (int i = 0; i < 5; ++i) {
        auto reading = in.read(std::span(buffer));
        auto got = co_await timeout(5s, std::move(reading));
        EXPECT_TRUE(got && *got && **got == 2) << i;
      }
    };
    run(loop, main());
  }
}

TEST_P(ReviewOn, ANumberThatADescriptorHasIsNotBorrowedToo) {
  if (GetParam() != Driver::epoll) return;  // the others take both
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  auto main = [&]() -> Task<void> {
    Descriptor in{UniqueFd(pair[0])}, out{UniqueFd(pair[1])};
    std::byte byte[1];
    auto reading = in.read(std::span(byte));
    auto both = [&]() -> Task<void> {
      co_await yield();
      EXPECT_THROW(static_cast<void>(co_await readable(in.number())), UsageError);
      EXPECT_TRUE(co_await out.write(std::as_bytes(std::span("x", 1))));
    };
    co_await all_of(std::move(reading), both());
  };
  run(loop, main());
}

}  // namespace
