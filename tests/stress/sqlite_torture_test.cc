// SPDX-License-Identifier: MIT
// Five processes on one lock file, by durable::Mutex, while they are stopped for longer than their leases, continued and killed at random, and
// the wall clock jumps by hours in all of them. What they did is recorded, and checked (support/lock_history.h).
//
// WEFT_STRESS_SECONDS says for how long; WEFT_SEED names a run.
#include <sys/syscall.h>
#include <sys/time.h>

#include <ctime>

#include "support/lock_contender.h"
#include "support/temporary_directory.h"

// --- The wall clock jumps -------------------------------------------------------------------------------
//
// This program's own clock: these come before the C library's, for everything that is linked with it. CLOCK_REALTIME is another hour at every
// call where it jumps, forward and back; the other clocks are the kernel's. (A time namespace does not have CLOCK_REALTIME, and the
// machine's own belongs to others.)

namespace {

constexpr const char* kWallClockJumps = "WEFT_TEST_WALL_CLOCK_JUMPS";

std::int64_t jump_seconds() {
  static const bool jumps = std::getenv(kWallClockJumps) != nullptr;
  if (!jumps) return 0;
  static std::atomic<std::int64_t> calls{0};
  std::int64_t call = calls.fetch_add(1, std::memory_order_relaxed);
  return (call % 17 - 8) * 3600 * (1 + call % 5 * 100);  // up to 167 days, to either side
}

}  // namespace

extern "C" int clock_gettime(clockid_t which, timespec* time) noexcept {
  int failed = static_cast<int>(::syscall(SYS_clock_gettime, which, time));
  bool wall = which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE || which == CLOCK_TAI;
  if (failed == 0 && wall) time->tv_sec += jump_seconds();
  return failed;
}
extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  int failed = ::clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return failed;
}
extern "C" time_t time(time_t* place) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (place) *place = now.tv_sec;
  return now.tv_sec;
}

namespace {

using namespace std::chrono_literals;
using namespace weft;
using namespace weft::test;

constexpr std::size_t kProcesses = 5;
constexpr std::chrono::milliseconds kLease{400};

void let_the_wall_clock_jump(ProcessOptions& options, std::size_t) {
  options.environment->push_back(std::string(kWallClockJumps) + "=1");
}

struct SqliteTorture : Torture {
  // Contends in a fresh folder while torment(contenders, until) goes on.
  template <class Torment>
  HistoryCheck contend(ContenderOptions options, Contenders::StartAs start_as, bool clocks_agree,
                       Torment torment) {
    TemporaryDirectory directory;
    options.url = "sqlite://" + directory.file("locks.db");
    options.history = directory.file("history");
    FencedRegister number(options.history);
    EventLoop loop;
    auto inside = [&](Nursery& nursery) -> Task<NurseryEnd> {
      Contenders all(nursery, number, options, random(2), start_as);
      all.start(kProcesses);
      co_await torment(all);
      bool through = co_await all.all_get_through(30s);
      EXPECT_TRUE(through) << "somebody gets nothing any more";
      co_await all.end_all();
      std::printf("[ TORTURE  ] %zu processes: %zu killed, %zu paused\n", kProcesses, all.kills,
                  all.pauses);
      co_return cancel;
    };
    auto root = [&]() -> Task<void> { co_await with_nursery(inside); };
    run(loop, root());
    return check_history(read_history(options.history), clocks_agree);
  }
  // SIGSTOP for up to four leases, and SIGKILL.
  Task<void> stop_and_kill(Contenders& all, std::chrono::nanoseconds how_long) {
    Random random = this->random(3);
    TimePoint begun = now();
    auto one = [&](std::size_t which) -> Task<void> {
      if (random.one_in(4)) {
        co_await all.replace(which);
      } else {
        co_await all.pause(which, kLease / 4 * random.below(16));
      }
    };
    while (now() - begun < how_long && all.all_alive()) {
      co_await sleep_for(std::chrono::milliseconds(random.below(100)));
      std::size_t first = all.any(), second = all.any();
      if (first == second) {
        co_await one(first);
      } else {
        co_await all_of(one(first), one(second));
      }
    }
  }
};

TEST_F(SqliteTorture, NoTwoHoldersAndNoLostUpdateWhoeverIsStoppedAndKilled) {
  if (const char* role = role_of_this_process()) return LockContender(role).run();
  ContenderOptions options{.url = {}, .history = {}, .lease = kLease, .tasks = 2};
  auto torment = [&](Contenders& all) -> Task<void> {
    co_await stop_and_kill(all, torture_time(15s));
  };
  HistoryCheck check = contend(options, let_the_wall_clock_jump, true, torment);
  expect_right(check);
  EXPECT_GE(check.updates, 20u);
  if (torture_time(0s) >= 60s) {
    EXPECT_GT(check.losses, 0u) << "nobody was stopped for long enough";
  }
}

// Nobody is stopped: so nobody loses its lock, whatever the wall clock says. Leases are CLOCK_BOOTTIME's.
TEST_F(SqliteTorture, AJumpOfTheWallClockChangesNothing) {
  if (const char* role = role_of_this_process()) return LockContender(role).run();
  // A busy machine stops a process for a while, too: so the leases are longer than that, and shorter than every jump.
  ContenderOptions options{
      .url = {}, .history = {}, .lease = 15s, .tasks = 2, .long_one_in = 1'000'000};
  auto torment = [](Contenders& all) -> Task<void> {
    co_await sleep_for(4s);
    static_cast<void>(all.all_alive());
  };
  HistoryCheck check = contend(options, let_the_wall_clock_jump, true, torment);
  expect_right(check);
  EXPECT_GE(check.updates, 10u);
  EXPECT_EQ(check.losses, 0u);
  EXPECT_EQ(check.refusals, 0u);
}

}  // namespace
