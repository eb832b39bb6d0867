// SPDX-License-Identifier: MIT
// A process that dies by SIGKILL before each of its calls to a lock file, between its commit and its answer, and between its commit and waking whom it
// concerns: nobody has the lock together with what it still had, no grant is lost, no token comes twice, no lease is shorter.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <sstream>
#include <string>

#include "support/dying_store.h"
#include "support/mortal.h"
#include "support/temporary_directory.h"
#include "support/this_test.h"
#include "weft/durable/mutex.h"
#include "weft/run/process.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using namespace weft::durable;
using namespace weft::test;
using DurableMutex = weft::durable::Mutex;

constexpr std::chrono::milliseconds kLease{240};

std::string url(const std::string& folder) { return "sqlite://" + folder + "/locks.db"; }
MutexOptions options(std::chrono::milliseconds lease) {
  return Mortal::Life{"", "", lease}.options();
}

struct SqliteStoreCrash : ::testing::Test {
  static Mortal::Life life_in(const std::string& folder) {
    return {url(folder), folder + "/history", kLease};
  }
  // Returns: how it ended.
  static Task<ExitStatus> live_and_die(std::string folder, DyingStore::Death death) {
    std::ostringstream role;
    role << folder << ' ' << death.call << ' ' << death.point << ' ' << death.time;
    Process process = or_throw(Process::spawn(this_test_as(role.str())));
    co_return or_throw(co_await process.wait());
  }
  static Task<void> live(std::string role) {
    std::istringstream words(role);
    std::string folder;
    DyingStore::Death death;
    int point = 0;
    words >> folder >> death.call >> point >> death.time;
    death.point = static_cast<DyingStore::Point>(point);
    Mortal mortal(life_in(folder), or_throw(make_store(url(folder))), death);
    co_await mortal.run();
  }
};

TEST_F(SqliteStoreCrash, BeforeEveryCallAndBetweenItsCommitAndItsAnswer) {
  EventLoop loop;
  if (const char* role = role_of_this_process()) return run(loop, live(role));
  std::vector<DyingStore::Death> deaths;
  for (const char* call : {"join", "enqueue", "renew", "release", "retire", "withdraw", "revoke"}) {
    deaths.push_back({call, DyingStore::before, 1});
    deaths.push_back({call, DyingStore::after, 1});
  }
  deaths.push_back({"enqueue", DyingStore::after, 2});  // one that waits
  deaths.push_back({"renew", DyingStore::before, 2});   // on the lease that the first has given it
  deaths.push_back({"nothing", DyingStore::before, 1});
  for (const DyingStore::Death& death : deaths) {
    SCOPED_TRACE(death.call + (death.point == DyingStore::before ? " before" : " after"));
    TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
    const std::string folder = directory.path().string();
    auto test = [&]() -> Task<void> {
      ExitStatus ended = co_await live_and_die(folder, death);
      EXPECT_EQ(ended, death.call == "nothing" ? ExitStatus::exited(Mortal::kLived)
                                               : ExitStatus::killed(SIGKILL))
          << ended.text();
      co_await come_after(life_in(folder));
    };
    run(loop, test());
  }
}

// --- Between the commit and the wake.

// From now on this process is killed when any thread of it writes one byte: so another session is woken, and nothing else is done that way.
void die_at_the_next_wake() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    ::_exit(Mortal::kLived);
}

Task<void> until_tickets(Engine& engine, std::size_t count) {
  while (true) {
    std::size_t there = 0;
    for (const ResourceReport& each : or_throw(co_await engine.report()))
      there += each.tickets.size();
    if (there == count) co_return;
    co_await sleep_for(1ms);
  }
}

TEST_F(SqliteStoreCrash, BetweenTheCommitOfAReleaseAndTheWake) {
  EventLoop loop;
  constexpr std::chrono::milliseconds kLong{60'000}, kShort{600};
  const char* role = role_of_this_process();
  TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
  const std::string folder = role ? role : directory.path().string();
  auto release_and_die = [&](Engine& engine) -> Task<void> {
    MutexOptions wanted = options(kLong);
    DurableMutex lock = or_throw(co_await DurableMutex::open(engine, wanted));
    auto section = [&](LockContext&) -> Task<void> {
      co_await until_tickets(engine, 2);
      die_at_the_next_wake();
    };
    or_throw(co_await lock.on_acquire(section));
    co_await sleep_for(10s);
  };
  auto wait = [&](Engine& engine) -> Task<void> {
    Process other = or_throw(Process::spawn(this_test_as(folder)));
    co_await until_tickets(engine, 1);
    MutexOptions wanted = options(kShort);
    DurableMutex lock = or_throw(co_await DurableMutex::open(engine, wanted));
    TimePoint begun = now();
    auto nothing = [](LockContext&) -> Task<void> { co_return; };
    auto got = co_await lock.on_acquire(nothing);
    EXPECT_TRUE(got.has_value()) << (got ? "" : got.error().what());
    EXPECT_LT(now() - begun, 20s)
        << "the news comes with the next renewal, not with the end of the lease";
    ExitStatus ended = or_throw(co_await other.wait());
    EXPECT_EQ(ended, ExitStatus::killed(SIGSYS)) << ended.text();
  };
  auto root = [&]() -> Task<void> {
    if (role) {
      or_throw(co_await with_engine(url(folder), release_and_die));
    } else {
      or_throw(co_await with_engine(url(folder), wait));
    }
  };
  run(loop, root());
}

TEST_F(SqliteStoreCrash, BetweenTheCommitOfARevocationAndTheWake) {
  EventLoop loop;
  const char* role = role_of_this_process();
  TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
  const std::string folder = role ? role : directory.path().string();
  auto revoke_and_die = [&](Engine& engine) -> Task<void> {
    die_at_the_next_wake();
    static_cast<void>(or_throw(co_await engine.revoke("r")));
    co_await sleep_for(10s);
  };
  auto hold = [&](Engine& engine) -> Task<void> {
    MutexOptions wanted = options(600ms);
    DurableMutex lock = or_throw(co_await DurableMutex::open(engine, wanted));
    auto section = [&](LockContext&) -> Task<void> {
      Process other = or_throw(Process::spawn(this_test_as(folder)));
      ExitStatus ended = or_throw(co_await other.wait());
      EXPECT_EQ(ended, ExitStatus::killed(SIGSYS)) << ended.text();
      co_await suspend_forever();
    };
    auto got = co_await timeout(20s, lock.on_acquire(section));
    EXPECT_TRUE(got && !*got && got->error() == LockError::lost) << "told by its next renewal";
  };
  auto root = [&]() -> Task<void> {
    if (role) {
      or_throw(co_await with_engine(url(folder), revoke_and_die));
    } else {
      or_throw(co_await with_engine(url(folder), hold));
    }
  };
  run(loop, root());
}

}  // namespace
