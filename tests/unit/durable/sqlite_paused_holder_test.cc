// SPDX-License-Identifier: MIT
// A process that is stopped while it holds a lock, for longer than its lease: it wakes up cancelled, knows that it has lost, and what it writes then is refused, by
// a FenceGate where the resource is, and by a FencedUpdate in a database.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <sstream>
#include <string>

#include "durable/sqlite/connection.h"
#include "support/durable_fixture.h"
#include "support/temporary_directory.h"
#include "support/this_test.h"
#include "weft/durable/fence_gate.h"
#include "weft/durable/mutex.h"
#include "weft/io/descriptor.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using namespace weft::durable;
using namespace weft::test;
using weft::durable::detail::Connection;
using weft::durable::detail::Cursor;
using weft::durable::detail::Statement;

// A database of somebody's, with a column for the token.
class Orders {
 public:
  explicit Orders(const std::string& folder) : file_(folder + "/orders.db") {
    file_.execute(
        "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT "
        "'new', "
        "fencing_token INTEGER NOT NULL DEFAULT 0); INSERT OR IGNORE INTO orders (id) VALUES (42)");
  }
  // Returns: how many rows were changed.
  std::int64_t set(const std::string& state, std::uint64_t token) {
    FencedUpdate update{.table = "orders", .assignments = "state = ?", .where = "id = ?"};
    Statement statement(file_, update.sql().c_str());
    statement.run(state, token, std::int64_t{42}, token);
    return std::stoll(file_.ask("SELECT changes()"));
  }
  [[nodiscard]] std::string state() { return file_.ask("SELECT state FROM orders WHERE id = 42"); }

 private:
  Connection file_;
};

MutexOptions options(std::chrono::milliseconds lease) {
  MutexOptions made = named("orders/42");
  made.lease = lease;
  return made;
}
std::string url(const std::string& folder) { return "sqlite://" + folder + "/locks.db"; }

// --- The one that is stopped: says "held <token> <rows>", then "late <token> <rows> <is_lost>", then "ended <error>".

void say(const std::string& words) {
  std::string line = words + "\n";
  if (::write(STDIN_FILENO, line.data(), line.size()) < 0) ::_exit(1);
}

Task<void> hold_and_be_stopped(std::string folder) {
  auto body = [&](Engine& engine) -> Task<void> {
    MutexOptions wanted = options(300ms);
    weft::durable::Mutex lock = or_throw(co_await weft::durable::Mutex::open(engine, wanted));
    auto section = [&](LockContext& held) -> Task<void> {
      Orders orders(folder);
      std::string token = std::to_string(held.fencing_token());
      say("held " + token + " " + std::to_string(orders.set("begun", held.fencing_token())));
      auto goodbye = [&]() -> Task<void> {
        std::int64_t rows = orders.set("finished", held.fencing_token());
        say("late " + token + " " + std::to_string(rows) + " " + std::to_string(held.is_lost()));
        co_return;
      };
      co_await until_cancelled_and(goodbye);
    };
    LockResult<> got = co_await lock.on_acquire(section);
    say(std::string("ended ") + (got ? "well" : to_string(got.error().kind())));
  };
  or_throw(co_await with_engine(url(folder), body));
}

// --- The one that gets it meanwhile.

class Lines {
 public:
  explicit Lines(Descriptor end) : end_(std::move(end)) {}
  Task<std::istringstream> next() {
    std::size_t at = 0;
    while ((at = came_.find('\n')) == came_.npos) {
      std::array<std::byte, 256> bytes;
      std::size_t count = or_throw(co_await end_.read(bytes));
      if (count == 0) throw std::runtime_error("it has ended after: " + came_);
      came_.append(reinterpret_cast<const char*>(bytes.data()), count);
    }
    std::istringstream line(came_.substr(0, at));
    came_.erase(0, at + 1);
    co_return line;
  }

 private:
  Descriptor end_;
  std::string came_;
};

struct Other {
  Process process;
  Lines lines;
};
Other start_other(const std::string& folder) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("socketpair");
  Descriptor ours{UniqueFd(ends[0])};
  ProcessOptions options = this_test_as(folder);
  options.in = Redirect::to(UniqueFd(ends[1]));
  return {or_throw(Process::spawn(std::move(options))), Lines(std::move(ours))};
}

TEST(SqlitePausedHolder, WakesUpCancelledAndItsLateWritesAreRefused) {
  EventLoop loop;
  if (const char* role = role_of_this_process()) return run(loop, hold_and_be_stopped(role));
  TemporaryDirectory directory;
  const std::string folder = directory.path().string();
  FenceGate gate;
  Orders orders(folder);
  auto body = [&](Engine& engine) -> Task<void> {
    Other other = start_other(folder);
    std::string word, error;
    std::uint64_t first = 0, late = 0;
    std::int64_t rows = -1;
    bool is_lost = false;
    std::istringstream held = co_await other.lines.next();
    held >> word >> first >> rows;
    EXPECT_EQ(word, "held");
    EXPECT_EQ(rows, 1) << "it holds it, and writes";
    EXPECT_TRUE(gate.admit("orders/42", first));
    or_throw(other.process.kill(SIGSTOP));

    MutexOptions wanted = options(20s);
    weft::durable::Mutex lock = or_throw(co_await weft::durable::Mutex::open(engine, wanted));
    auto section = [&](LockContext& mine) -> Task<void> {
      EXPECT_GT(mine.fencing_token(), first);
      EXPECT_TRUE(gate.admit("orders/42", mine.fencing_token()));
      EXPECT_EQ(orders.set("taken over", mine.fencing_token()), 1);
      or_throw(other.process.kill(SIGCONT));
      std::istringstream said = co_await other.lines.next();
      said >> word >> late >> rows >> is_lost;
      EXPECT_EQ(word, "late");
      EXPECT_EQ(late, first);
      EXPECT_EQ(rows, 0) << "the database refuses its late write";
      EXPECT_TRUE(is_lost) << "and it knows";
      EXPECT_FALSE(gate.admit("orders/42", late)) << "the gate refuses it, too";
      std::istringstream last = co_await other.lines.next();
      last >> word >> error;
      EXPECT_EQ(error, "lost");
      EXPECT_FALSE(mine.is_lost());
    };
    or_throw(co_await lock.on_acquire(section));
    ExitStatus status = or_throw(co_await other.process.wait());
    EXPECT_TRUE(status.success()) << status.text();
  };
  auto root = [&]() -> Task<void> { or_throw(co_await with_engine(url(folder), body)); };
  run(loop, root());
  EXPECT_EQ(orders.state(), "taken over");
}

// The statement, as SQLite carries it out.
TEST(FencedUpdateInSqlite, ChangesARowOnlyForTheGreatestTokenSoFar) {
  TemporaryDirectory directory;
  Orders orders(directory.path().string());
  EXPECT_EQ(orders.set("five", 5), 1);
  EXPECT_EQ(orders.set("five again", 5), 1) << "a holder writes more than once";
  EXPECT_EQ(orders.set("seven", 7), 1);
  EXPECT_EQ(orders.set("six", 6), 0);
  EXPECT_EQ(orders.set("five once more", 5), 0);
  EXPECT_EQ(orders.state(), "seven");
  EXPECT_EQ(orders.set("eight", 8), 1);
  EXPECT_EQ(orders.state(), "eight");
}

}  // namespace
