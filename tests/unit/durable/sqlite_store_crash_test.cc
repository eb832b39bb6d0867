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
#include <fstream>
#include <sstream>
#include <string>

#include "support/durable_fixture.h"
#include "support/dying_store.h"
#include "support/lock_history.h"
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
constexpr int kLived = 5;  // exit status

std::string url(const std::string& folder) { return "sqlite://" + folder + "/locks.db"; }
MutexOptions options(std::chrono::milliseconds lease) {
  MutexOptions made = named("r");
  made.lease = lease;
  made.idle_timeout = 20ms;
  return made;
}

// --- The one that dies: makes every call there is, in turn.

class Mortal {
 public:
  Mortal(std::string folder, DyingStore::Death death)
      : folder_(std::move(folder)), death_(std::move(death)), log_(folder_ + "/history") {}
  // "<folder> <call> <point> <time>"
  static Mortal of(const std::string& role) {
    std::istringstream words(role);
    std::string folder;
    DyingStore::Death death;
    int point = 0;
    words >> folder >> death.call >> point >> death.time;
    death.point = static_cast<DyingStore::Point>(point);
    return {folder, death};
  }

  Task<void> run() {
    auto seen = [this](const std::string& call, DyingStore::Point point) {
      if (call == "enqueue" && point == DyingStore::before) asked_ = boot_now();
      // The first is granted, the second waits.
      if (call == "enqueue" && point == DyingStore::after && store_->answered("enqueue") == 0)
        promised_ = asked_ + kLeaseNs;
      say_promise();
    };
    auto store = std::make_unique<DyingStore>(or_throw(make_store(url(folder_))), death_, seen);
    store_ = store.get();
    auto body = [&](Engine& engine) -> Task<void> { co_await use(engine); };
    or_throw(co_await with_engine(std::move(store), body));
    ::_exit(kLived);
  }

 private:
  static constexpr std::int64_t kLeaseNs = std::chrono::nanoseconds(kLease).count();

  Task<void> use(Engine& engine) {
    MutexOptions wanted = options(kLease);
    DurableMutex lock = or_throw(co_await DurableMutex::open(engine, wanted));  // join
    auto hold = [&](LockContext& held) -> Task<void> {
      token_ = held.fencing_token();
      log_.add({.what = LockEvent::hold,
                .who = "mortal",
                .token = token_,
                .begin = asked_,
                .end = boot_now()});
      while (store_->answered("renew") == 0) {
        promised_ = boot_now() + held.lease_left().count();
        co_await sleep_for(1ms);
      }
      promised_ = 0;
    };
    or_throw(co_await lock.on_acquire(hold));  // enqueue, renew, release
    co_await until_answered("retire");
    auto aside = [&](Engine& other) -> Task<void> {
      DurableMutex theirs = or_throw(co_await DurableMutex::open(other, wanted));
      auto wait = [&](LockContext&) -> Task<void> {
        auto never = [](LockContext&) -> Task<void> { co_return; };
        static_cast<void>(co_await timeout(10ms, lock.on_acquire(never)));
        co_await until_answered("withdraw");
      };
      or_throw(co_await theirs.on_acquire(wait));  // enqueue that waits, withdraw
    };
    or_throw(co_await with_engine(url(folder_), aside));
    static_cast<void>(or_throw(co_await engine.revoke("r")));
  }
  Task<void> until_answered(std::string call) {
    while (store_->answered(call) == 0) co_await sleep_for(1ms);
  }
  // Until when nobody else can have it.
  void say_promise() {
    log_.add({.what = LockEvent::sure,
              .who = "mortal",
              .token = token_,
              .begin = promised_,
              .end = promised_});
  }

  std::string folder_;
  DyingStore::Death death_;
  DyingStore* store_ = nullptr;
  HistoryLog log_;
  std::int64_t asked_ = 0;
  std::int64_t promised_ = 0;
  std::uint64_t token_ = 0;
};

// --- Who comes afterwards.

struct SqliteStoreCrash : ::testing::Test {
  // Returns: how it ended.
  static Task<ExitStatus> live_and_die(std::string folder, DyingStore::Death death) {
    std::ostringstream role;
    role << folder << ' ' << death.call << ' ' << death.point << ' ' << death.time;
    Process process = or_throw(Process::spawn(this_test_as(role.str())));
    co_return or_throw(co_await process.wait());
  }
  static Task<void> come_after(std::string folder) {
    LockEvents history = read_history(folder + "/history");
    std::uint64_t greatest = 0;
    for (const LockEvent& event : history) greatest = std::max(greatest, event.token);
    // What its last line promised holds though it is dead.
    EXPECT_FALSE(history.empty());
    const std::int64_t promised = history.empty() ? 0 : history.back().begin;
    auto body = [&](Engine& engine) -> Task<void> {
      MutexOptions wanted = options(kLease);
      DurableMutex lock = or_throw(co_await DurableMutex::open(engine, wanted));
      auto section = [&](LockContext& held) -> Task<void> {
        EXPECT_GE(boot_now(), promised) << "a lease was cut short";
        EXPECT_GT(held.fencing_token(), greatest);
        auto report = or_throw(co_await engine.report());
        EXPECT_EQ(report.at(0).tickets.size(), 1u) << "it alone is there";
      };
      TimePoint begun = now();
      auto got = co_await lock.on_acquire(section);
      EXPECT_TRUE(got.has_value()) << (got ? "" : got.error().what());
      EXPECT_LT(now() - begun, 10s) << "a grant was lost";
    };
    or_throw(co_await with_engine(url(folder), body));
  }
};

TEST_F(SqliteStoreCrash, BeforeEveryCallAndBetweenItsCommitAndItsAnswer) {
  EventLoop loop;
  if (const char* role = role_of_this_process()) {
    Mortal mortal = Mortal::of(role);
    return run(loop, mortal.run());
  }
  std::vector<DyingStore::Death> deaths;
  for (const char* call : {"join", "enqueue", "renew", "release", "retire", "withdraw", "revoke"}) {
    deaths.push_back({call, DyingStore::before, 1});
    deaths.push_back({call, DyingStore::after, 1});
  }
  deaths.push_back({"enqueue", DyingStore::after, 2});  // one that waits
  deaths.push_back({"nothing", DyingStore::before, 1});
  for (const DyingStore::Death& death : deaths) {
    SCOPED_TRACE(death.call + (death.point == DyingStore::before ? " before" : " after"));
    TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
    const std::string folder = directory.path().string();
    auto test = [&]() -> Task<void> {
      ExitStatus ended = co_await live_and_die(folder, death);
      EXPECT_EQ(ended,
                death.call == "nothing" ? ExitStatus::exited(kLived) : ExitStatus::killed(SIGKILL))
          << ended.text();
      co_await come_after(folder);
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
    ::_exit(kLived);
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
