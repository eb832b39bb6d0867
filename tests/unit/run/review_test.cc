// SPDX-License-Identifier: MIT
// What an adversary found in the runtime, one test each.
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

TEST(RuntimeReview, SchedulingWhileRunsComeAndGoLosesNothing) {
  std::atomic<int> given = 0, ran = 0;
  auto count = [&]() -> Task<void> {
    ++ran;
    co_return;
  };
  IOContext ctx{{.workers = 3}};
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over) {
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

// Worker 1 is woken to search, and finds something else to do that never ends.
TEST(RuntimeReview, AWorkerThatIsBusyDoesNotCountAsSearching) {
  IOContext ctx{{.workers = 3}};
  std::atomic<bool> ran = false, over = false;
  auto fresh = [&]() -> Task<void> {
    ran = true;
    co_return;
  };
  auto busy = [&]() -> Task<void> {
    while (!over) co_await yield();
  };
  auto main = [&]() -> Task<void> {
    for (std::size_t round = 0; round < 20; ++round) {
      over = ran = false;
      co_await sleep_for(1ms);  // the others park
      auto body = [&](Nursery& n) -> Task<NurseryEnd> {
        n.schedule(fresh);
        n.start_on(ctx.loop(1 + round % 2), busy());
        auto until = std::chrono::steady_clock::now() + 5s;
        while (!ran && std::chrono::steady_clock::now() < until) std::this_thread::yield();
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

TEST(RuntimeReview, OutOfDescriptorsIsAnError) {
  rlimit before;
  ::getrlimit(RLIMIT_NOFILE, &before);
  int next = ::dup(0);
  ::close(next);
  for (rlim_t spare = 0; spare < 8; ++spare) {
    rlimit few{static_cast<rlim_t>(next) + spare, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    try {
      EventLoop loop{{.driver = Driver::epoll}};
      EXPECT_EQ(run(loop, just(1)), 1);
    } catch (const std::system_error&) {
    }
    try {
      IOContext ctx{{.workers = 3, .driver = Driver::epoll}};
      ctx.run(nothing());
    } catch (const std::system_error&) {
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
  }
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
