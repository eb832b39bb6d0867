// SPDX-License-Identifier: MIT
// A process that dies by SIGKILL at every point of every operation on a lock file: afterwards the operation has happened
// wholly or not at all, and once it has been answered it has; made again, it ends where it would have ended; no token is given
// twice, no lease is shorter.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support/lock_tables.h"
#include "support/temporary_directory.h"

namespace {

using namespace weft;
using namespace weft::test;

constexpr std::int64_t kNow = 100'000;
constexpr std::int64_t kLater = kNow + 5'000;  // when the short leases have ended
constexpr int kStepsMax = 500;

using Operation = std::function<void(LockTable&)>;

enum class How { died, came_to_its_end, failed };

// In a child process, which dies at the n-th step from `begin` on.
How run_and_die(int n, const std::function<void(const std::function<void()>& step)>& work) {
  pid_t child = ::fork();
  if (child == 0) {
    int left = n;
    std::function<void()> step = [&] {
      if (--left == 0) ::kill(::getpid(), SIGKILL);
    };
    bool well = true;
    try {
      work(step);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
      well = false;
    }
    ::_exit(well ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return How::died;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? How::came_to_its_end : How::failed;
}

TicketRequest of(std::string resource, TicketNumber number, std::uint32_t weight,
                 std::uint32_t capacity, std::int64_t lease) {
  TicketRequest made = request(std::move(resource), number, lease);
  made.weight = weight;
  made.capacity = capacity;
  made.tokens = 4;
  return made;
}

// One holds "one" for a short time, two wait for it; "many" is shared; nobody is at "empty".
void prepare(LockTable& table) {
  or_throw(table.join("empty", 1, kNow));
  static_cast<void>(or_throw(table.enqueue(1, of("one", 1, 1, 1, 2'000), kNow)));
  static_cast<void>(or_throw(table.enqueue(2, of("one", 1, 1, 1, 60'000), kNow)));
  static_cast<void>(or_throw(table.enqueue(3, of("one", 1, 1, 1, 60'000), kNow)));
  static_cast<void>(or_throw(table.enqueue(1, of("many", 2, 2, 4, 60'000), kNow)));
  static_cast<void>(or_throw(table.enqueue(2, of("many", 2, 4, 4, 60'000), kNow)));
  static_cast<void>(or_throw(table.enqueue(3, of("many", 2, 1, 4, 60'000), kNow)));
}
TokenBlock tokens_of(LockTable& table, SessionId session, TicketNumber number) {
  for (const LockTable::Mine& each : or_throw(table.state(session)).tickets) {
    if (each.number == number) return each.tokens;
  }
  return {};
}

class Sweep {
 public:
  explicit Sweep(Operation operation) : operation_(std::move(operation)) {
    {
      auto table = open_table(template_);
      prepare(*table);
    }
    std::string path = fresh_copy();
    auto reference = open_table(path);
    before_ = seen(*reference);
    operation_(*reference);
    done_ = seen(*reference);
    reference.reset();
    reference = open_table(path);  // as it is found: what nobody uses is forgotten then
    after_ = seen(*reference);
    probe_ = probe(*reference);
  }

  void run() {
    bool happened = false;
    for (int n = 1; n < kStepsMax && !::testing::Test::HasFailure(); ++n) {
      SCOPED_TRACE("died at step " + std::to_string(n));
      std::string path = fresh_copy();
      How how = run_and_die(n, [&](const std::function<void()>& step) {
        std::function<void()> now_and_then;
        SqliteTable::Options options = table_options(path, kNow);
        options.step = [&] {
          if (now_and_then) now_and_then();
        };
        auto table = or_throw(SqliteTable::open(std::move(options)));
        now_and_then = step;
        operation_(*table);
        now_and_then = nullptr;
        static_cast<void>(table.release());  // as it is: no tidy end
      });
      ASSERT_NE(how, How::failed);
      happened = check(path, happened);
      if (how == How::died) continue;
      EXPECT_TRUE(happened);
      EXPECT_GT(n, 4);
      return;
    }
    EXPECT_TRUE(::testing::Test::HasFailure()) << "it never came to its end";
  }

 private:
  // Returns: whether the operation has happened. Requires: if it had in an earlier death, it has now.
  bool check(const std::string& path, bool happened) {
    auto table = open_table(path, kNow);
    std::string found = seen(*table);
    EXPECT_TRUE(found == after_ || (found == before_ && !happened)) << "found:\n"
                                                                    << found << "before:\n"
                                                                    << before_ << "after:\n"
                                                                    << after_;
    expect_sound(*table, kNow);
    happened = found == after_;
    operation_(*table);  // again: its answer was lost
    EXPECT_EQ(seen(*table), done_);
    EXPECT_EQ(probe(*table), probe_);
    return happened;
  }

  std::string fresh_copy() {
    std::string path = directory_.file("copy.db");
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
    std::filesystem::copy_file(template_, path);
    return path;
  }
  static std::string seen(LockTable& table) { return text_of(table.report({}, kNow)); }
  static std::uint64_t probe(LockTable& table) {
    return or_throw(table.enqueue(9, request("probe", 1), kNow)).tokens.first;
  }

  TemporaryDirectory directory_{TemporaryDirectory::where_syncs_are_cheap()};
  std::string template_ = directory_.file("template.db");
  Operation operation_;
  std::string before_, done_, after_;  // after: done, and opened anew
  std::uint64_t probe_ = 0;
};

void sweep(Operation operation) {
  Sweep swept(std::move(operation));
  swept.run();
}

// What an operation says is looked at elsewhere.
template <class T>
void drop(const LockResult<T>&) {}

TEST(SqliteCrash, Join) {
  sweep([](LockTable& table) { drop(table.join("new", 3, kNow)); });
}
TEST(SqliteCrash, EnqueueThatIsGranted) {
  sweep([](LockTable& table) { drop(table.enqueue(4, of("new", 1, 1, 2, 9'000), kNow)); });
}
TEST(SqliteCrash, EnqueueThatWaits) {
  sweep([](LockTable& table) { drop(table.enqueue(4, of("one", 1, 1, 1, 9'000), kNow)); });
}
TEST(SqliteCrash, EnqueueThatFindsALeaseEnded) {
  sweep([](LockTable& table) { drop(table.enqueue(4, of("one", 1, 1, 1, 9'000), kLater)); });
}
TEST(SqliteCrash, Renew) {
  sweep([](LockTable& table) { drop(table.renew(1, {1, 2, 3}, kNow + 700)); });
}
TEST(SqliteCrash, ReleaseThatGrantsTheNext) {
  sweep([](LockTable& table) { drop(table.release(1, 1, tokens_of(table, 1, 1), kNow)); });
}
TEST(SqliteCrash, WithdrawOfAHolder) {
  sweep([](LockTable& table) { drop(table.withdraw(1, 2, kNow)); });
}
TEST(SqliteCrash, WithdrawOfAWaiterThatOthersWaitFor) {
  sweep([](LockTable& table) { drop(table.withdraw(2, 2, kNow)); });
}
TEST(SqliteCrash, Expire) {
  sweep([](LockTable& table) { drop(table.expire(2, kLater)); });
}
TEST(SqliteCrash, Retire) {
  sweep([](LockTable& table) {
    drop(table.join("empty", 1, kNow));
    drop(table.retire("empty", kNow));
  });
}
TEST(SqliteCrash, Revoke) {
  sweep([](LockTable& table) { drop(table.revoke("one", kNow)); });
}
TEST(SqliteCrash, SeveralInOneCommit) {
  sweep([](LockTable& table) {
    or_throw(table.begin());
    drop(table.withdraw(1, 1, kNow));
    drop(table.enqueue(4, of("new", 1, 1, 1, 9'000), kNow));
    drop(table.retire("empty", kNow));
    drop(table.renew(3, {1, 2}, kNow + 10));
    or_throw(table.commit(true));
  });
}

// Making the file, and beginning its leases anew after a boot.
TEST(SqliteCrash, MakingTheFile) {
  TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
  for (int n = 1; n < kStepsMax && !HasFailure(); ++n) {
    SCOPED_TRACE("died at step " + std::to_string(n));
    std::string path = directory.file("locks" + std::to_string(n) + ".db");
    How how = run_and_die(n, [&](const std::function<void()>& step) {
      SqliteTable::Options options = table_options(path);
      options.step = step;
      static_cast<void>(or_throw(SqliteTable::open(std::move(options))).release());
    });
    ASSERT_NE(how, How::failed);
    auto table = open_table(path);
    EXPECT_EQ(or_throw(table->enqueue(1, request("resource", 1), 0)).tokens.first, 1u);
    if (how == How::came_to_its_end) return;
  }
  ADD_FAILURE() << "it never came to its end";
}

TEST(SqliteCrash, TheFirstOpeningAfterABoot) {
  TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
  for (int n = 1; n < kStepsMax && !HasFailure(); ++n) {
    SCOPED_TRACE("died at step " + std::to_string(n));
    std::string path = directory.file("locks" + std::to_string(n) + ".db");
    prepare(*open_table(path, kNow));
    // Its clock shows more than that of the last boot did: so leases that go on would be shorter.
    constexpr std::int64_t kNext = kNow + 1'500;
    SqliteTable::Options options = table_options(path, kNext);
    options.boot_id = "another boot";
    How how = run_and_die(n, [&](const std::function<void()>& step) {
      SqliteTable::Options with_step = options;
      with_step.step = step;
      static_cast<void>(or_throw(SqliteTable::open(std::move(with_step))).release());
    });
    ASSERT_NE(how, How::failed);
    auto table = or_throw(SqliteTable::open(options));
    for (const ResourceReport& one : or_throw(table->report({}, kNext))) {
      for (const TicketReport& each : one.tickets) EXPECT_GE(each.lease_left.count(), 2'000);
    }
    if (how == How::came_to_its_end) return;
  }
  ADD_FAILURE() << "it never came to its end";
}

}  // namespace
