// SPDX-License-Identifier: MIT
// Several processes on one lock file. They are stopped, continued and killed at random while they count in a register that
// checks their tokens: no count is lost, whatever they believed. And they wake each other without delay.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "durable/sqlite/sqlite_store.h"
#include "durable/sqlite/sqlite_writer.h"
#include "support/lock_sessions.h"
#include "support/lock_tables.h"
#include "support/stress.h"
#include "support/temporary_directory.h"
#include "support/this_test.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using namespace weft::test;
using durable::detail::boot_clock;
using durable::detail::make_sqlite_store;

// Appends a line, at once or not at all: also if we are killed.
void append(int fd, const std::string& line) {
  if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::runtime_error("append");
  }
}

// A register behind a gate, as a file that says all that was done with it: "r token" or "w token value" each. A token that is
// smaller than one that it has seen is refused.
class Register {
 public:
  explicit Register(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)), path_(path) {}

  // Returns: the value, or nothing if the token is too old.
  std::optional<std::uint64_t> read(std::uint64_t token) {
    Locked locked(fd_.get());
    auto [highest, value] = last();
    if (token < highest) return std::nullopt;
    append(fd_.get(), "r " + std::to_string(token) + "\n");
    return value;
  }
  bool write(std::uint64_t token, std::uint64_t value) {
    Locked locked(fd_.get());
    if (token < last().first) return false;
    append(fd_.get(), "w " + std::to_string(token) + " " + std::to_string(value) + "\n");
    return true;
  }
  // What was written, in order.
  [[nodiscard]] std::vector<std::uint64_t> values() const {
    std::vector<std::uint64_t> all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      if (line[0] == 'w') all.push_back(std::stoull(line.substr(line.rfind(' '))));
    }
    return all;
  }

 private:
  struct Locked {
    explicit Locked(int of) : fd(of) { ::flock(fd, LOCK_EX); }
    ~Locked() { ::flock(fd, LOCK_UN); }
    int fd;
  };
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> last() const {
    std::uint64_t highest = 0, value = 0;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line.substr(1));
      std::uint64_t token = 0;
      words >> token;
      highest = std::max(highest, token);
      if (line[0] == 'w') words >> value;
    }
    return {highest, value};
  }

  UniqueFd fd_;
  std::string path_;
};

// --- Contention -----------------------------------------------------------------------------------------

struct SqliteProcesses : ::testing::Test {
  static constexpr std::chrono::milliseconds kLease{250};
  static constexpr std::chrono::seconds kContend{5};
  static constexpr std::chrono::seconds kContendMax{20};  // a busy machine
  static constexpr std::size_t kCountsMin = 50;
  static constexpr int kProcesses = 5;
};

// One contender: "<folder> <seed>". Writes "token asked heard" for each grant to a log of its own.
class Contender {
 public:
  Contender(const std::string& folder, std::uint64_t seed)
      : random_(seed),
        register_(folder + "/register"),
        log_(::open((folder + "/log" + std::to_string(seed)).c_str(),
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
        url_("sqlite://" + folder + "/locks.db") {}

  // For ever: it is killed in the end.
  Task<void> run() {
    LockSessions one;
    one.push_back(std::make_unique<LockSession>(or_throw(make_sqlite_store(url_))));
    LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
      for (TicketNumber number = 1;; ++number) co_await round(*all[0], number);
    };
    co_await with_lock_sessions(one, body);
  }

 private:
  Task<void> round(LockSession& session, TicketNumber number) {
    std::int64_t asked = boot_clock();
    TicketRequest wanted =
        request("register", number, std::chrono::nanoseconds(SqliteProcesses::kLease).count());
    wanted.tokens = 1 + random_.below(3);
    LockResult<Placed> placed = co_await session.store->enqueue(wanted);
    if (!placed) {
      if (placed.error() != LockError::unreachable) or_throw(placed);
      co_await give_up(session, number);
      co_return;
    }
    if (placed->standing == Standing::queued) {
      co_await hear(session, number);
      if (!session.grants.contains(number)) co_return co_await give_up(session, number);
      placed->tokens = session.grants[number];
    }
    append(log_.get(), std::to_string(placed->tokens.first) + " " + std::to_string(asked) + " " +
                           std::to_string(boot_clock()) + "\n");
    co_await count(placed->tokens.first);
    LockResult<> released = co_await session.store->release(number, placed->tokens);
    if (!released && released.error() != LockError::not_owner) co_await give_up(session, number);
  }
  // Granted, or gone. Queued tickets are kept alive.
  Task<void> hear(LockSession& session, TicketNumber number) {
    while (!session.grants.contains(number) && !session.lost.contains(number)) {
      auto told = co_await timeout(SqliteProcesses::kLease / 3, session.news.wait());
      if (told) continue;
      std::vector<TicketNumber> mine{number};
      LockResult<std::vector<TicketNumber>> gone = co_await session.store->renew(mine);
      if (gone && !gone->empty()) co_return;
    }
  }
  static Task<void> give_up(LockSession& session, TicketNumber number) {
    LockResult<> withdrawn = co_await session.store->withdraw(number);
    static_cast<void>(withdrawn);
  }
  // Reads, dawdles, and writes: others come between if the lock does not hold, and the gate must see it.
  Task<void> count(std::uint64_t token) {
    std::optional<std::uint64_t> value = register_.read(token);
    if (!value) co_return;
    auto pause = std::chrono::microseconds(random_.below(4000));
    if (random_.one_in(30)) pause = SqliteProcesses::kLease * 3 / 2;  // longer than it may
    co_await sleep_for(pause);
    register_.write(token, *value + 1);
  }

  Random random_;
  Register register_;
  UniqueFd log_;
  std::string url_;
};

struct Grant {
  std::uint64_t token;
  std::int64_t asked, heard;
};

std::vector<Grant> grants_in(const std::string& folder) {
  std::vector<Grant> all;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (!each.path().filename().string().starts_with("log")) continue;
    std::ifstream file(each.path());
    for (Grant one{}; file >> one.token >> one.asked >> one.heard;) all.push_back(one);
  }
  std::ranges::sort(all, {}, &Grant::token);
  return all;
}

// Stops, continues, kills and replaces them.
class Torturer {
 public:
  Torturer(std::string folder, Random random) : folder_(std::move(folder)), random_(random) {}

  Task<void> run() {
    for (int i = 0; i < SqliteProcesses::kProcesses; ++i) processes_.push_back(another());
    TimePoint begun = now();
    while (!enough(now() - begun)) {
      co_await sleep_for(std::chrono::milliseconds(random_.below(80)));
      Process& victim = processes_[random_.below(SqliteProcesses::kProcesses)];
      std::optional<Result<ExitStatus>> ended = victim.try_wait();
      EXPECT_FALSE(ended.has_value()) << "it ended by itself: " << or_throw(*ended).text();
      if (ended) break;
      if (random_.one_in(4)) {
        static_cast<void>(victim.kill(SIGKILL));
        co_await victim.wait();
        victim = another();
      } else {
        static_cast<void>(victim.kill(SIGSTOP));
        co_await sleep_for(std::chrono::milliseconds(random_.below(600)));
        static_cast<void>(victim.kill(SIGCONT));
      }
    }
    for (Process& each : processes_) {
      static_cast<void>(each.kill(SIGKILL));
      co_await each.wait();
    }
  }

 private:
  [[nodiscard]] bool enough(std::chrono::nanoseconds spent) const {
    if (spent < SqliteProcesses::kContend) return false;
    return spent >= SqliteProcesses::kContendMax ||
           Register(folder_ + "/register").values().size() >= SqliteProcesses::kCountsMin;
  }
  Process another() {
    ProcessOptions options =
        this_test_as(folder_ + " " + std::to_string(random_.next() % 1'000'000));
    return or_throw(Process::spawn(std::move(options)));
  }

  std::string folder_;
  Random random_;
  std::vector<Process> processes_;
};

TEST_F(SqliteProcesses, TokensProtectARegisterFromWhoeverIsPausedOrKilled) {
  EventLoop loop;
  if (const char* role = role_of_this_process()) {
    std::istringstream words(role);
    std::string folder;
    std::uint64_t seed = 0;
    words >> folder >> seed;
    Contender contender(folder, seed);
    run(loop, contender.run());
    return;
  }
  TemporaryDirectory directory;
  std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Torturer torturer(directory.path().string(), Random(seed));
  run(loop, torturer.run());

  std::vector<std::uint64_t> values = Register(directory.file("register")).values();
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i + 1) << "a count was lost";
  std::vector<Grant> grants = grants_in(directory.path().string());
  std::int64_t asked = 0;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    if (i > 0) {
      EXPECT_GT(grants[i].token, grants[i - 1].token) << "given twice";
    }
    asked = std::max(asked, grants[i].asked);
    EXPECT_GE(grants[i].heard, asked)
        << "a greater token was granted before a smaller was asked for";
  }
  std::printf("[  COUNTED ] %zu, in %zu grants\n", values.size(), grants.size());
  EXPECT_GE(values.size(), kCountsMin);

  auto table = open_table(directory.file("locks.db"), boot_clock());
  expect_sound(*table, boot_clock());
}

// --- Waking -----------------------------------------------------------------------------------------------

// Asks for its next ticket before it gives the last one back: so the lock goes to and fro. Until `waits` has so many.
Task<void> play(LockSession& session, std::size_t enough,
                std::vector<std::chrono::nanoseconds>& waits) {
  constexpr std::int64_t kLease = 30'000'000'000;
  TicketRequest first = request("ball", 1, kLease);
  TokenBlock held = co_await session.acquire(first);
  for (TicketNumber number = 2; waits.size() < enough; ++number) {
    TicketRequest next = request("ball", number, kLease);
    LockResult<Placed> placed = co_await session.store->enqueue(next);
    bool other_waits = or_throw(placed).ahead > 1;
    TimePoint begun = now();
    LockResult<> released = co_await session.store->release(number - 1, held);
    or_throw(released);
    held = co_await session.until_granted(number);
    if (other_waits) waits.push_back((now() - begun) / 2);  // there and back
  }
}

TEST_F(SqliteProcesses, WakeEachOtherWithoutDelay) {
  constexpr std::size_t kRounds = 100, kForEver = 1'000'000;
  EventLoop loop;
  TemporaryDirectory directory;
  const char* role = role_of_this_process();
  std::string path = role ? role : directory.file("locks.db");
  LockSessions one;
  one.push_back(std::make_unique<LockSession>(or_throw(make_sqlite_store("sqlite://" + path))));
  std::vector<std::chrono::nanoseconds> waits;
  LockSessionsBody body = [&](LockSessions& all) -> Task<void> {
    if (role) co_return co_await play(*all[0], kForEver, waits);
    Process other = or_throw(Process::spawn(this_test_as(path)));
    co_await play(*all[0], kRounds, waits);
    static_cast<void>(other.kill(SIGKILL));
    co_await other.wait();
  };
  auto test = [&]() -> Task<void> { co_await with_lock_sessions(one, body); };
  run(loop, test());
  ASSERT_GE(waits.size(), kRounds);
  std::ranges::sort(waits);
  auto median = waits[waits.size() / 2];
  std::printf(
      "[  HAND-OFF] %lld us, median of %zu\n",
      static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(median).count()),
      waits.size());
  EXPECT_LT(median, 20ms);
}

}  // namespace
