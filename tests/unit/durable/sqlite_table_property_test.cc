// SPDX-License-Identifier: MIT
// SqliteTable against MemoryTable: random calls, alone and several to a commit, give the same answers, the same news and the
// same state. A failure prints its seed; WEFT_SEED=<n> runs that one alone.
#include <cstdlib>

#include "durable/memory_table.h"
#include "support/lock_tables.h"
#include "support/stress.h"
#include "support/temporary_directory.h"

namespace {

using namespace weft;
using namespace weft::test;
using durable::detail::MemoryTable;

constexpr unsigned kSessions = 4;
constexpr unsigned kResources = 3;
constexpr unsigned kSeeds = 20;
constexpr unsigned kSteps = 250;

class Comparison {
 public:
  Comparison(std::uint64_t seed, std::string path)
      : random_(seed), sqlite_(open_table(std::move(path))) {}

  void run() {
    for (unsigned i = 0; i < kSteps && !::testing::Test::HasFailure(); ++i) {
      if (random_.one_in(4)) {
        commit_of_several();
      } else {
        one_call();
        ASSERT_TRUE(memory_.commit(false));  // the other has done so itself
      }
      compare_states();
      now_ += random_.below(30);
    }
  }

 private:
  void commit_of_several() {
    ASSERT_TRUE(memory_.begin() && sqlite_->begin());
    for (unsigned left = 1 + random_.below(5); left > 0; --left) one_call();
    EXPECT_EQ(memory_.has_granted(), sqlite_->has_granted());
    ASSERT_TRUE(memory_.commit(true) && sqlite_->commit(memory_.has_granted()));
    EXPECT_FALSE(sqlite_->has_granted());
  }

  // The same of both, and what they say.
  template <class Fn>
  void both(const std::string& what, Fn fn) {
    std::string of_memory = text_of(fn(static_cast<LockTable&>(memory_)));
    std::string of_sqlite = text_of(fn(static_cast<LockTable&>(*sqlite_)));
    EXPECT_EQ(of_memory, of_sqlite) << what << " at " << now_;
    std::vector<SessionId> told = memory_.take_told(), told_by_sqlite = sqlite_->take_told();
    std::ranges::sort(told);
    std::ranges::sort(told_by_sqlite);
    EXPECT_EQ(told, told_by_sqlite) << what << " at " << now_;
  }

  void one_call() {
    SessionId session = 1 + random_.below(kSessions);
    std::string resource = "resource " + std::to_string(random_.below(kResources));
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return enqueue(session, resource);
      case 4:
        return both("renew", [&, some = some_numbers()](LockTable& table) {
          return table.renew(session, some, now_);
        });
      case 5:
      case 6:
        return release(session);
      case 7:
        return both("withdraw", [&, number = a_number()](LockTable& table) {
          return table.withdraw(session, number, now_);
        });
      case 8:
        return both("retire", [&](LockTable& table) { return table.retire(resource, now_); });
      case 9:
        if (!random_.one_in(3)) return release(session);
        return both("revoke", [&](LockTable& table) { return table.revoke(resource, now_); });
      case 10:
        return both("expire", [&](LockTable& table) { return table.expire(session, now_); });
      default:
        return both("join", [&, capacity = capacity_of(resource) + random_.one_in(8)](
                                LockTable& table) { return table.join(resource, capacity, now_); });
    }
  }

  void enqueue(SessionId session, const std::string& resource) {
    TicketRequest asked =
        request(resource, random_.one_in(5) ? a_number() : ++last_number_, 10 + random_.below(200));
    asked.capacity = capacity_of(resource) + random_.one_in(20);
    asked.weight = random_.one_in(3) ? capacity_of(resource) : 1;
    asked.tokens = 1 + random_.below(4);
    asked.only_if_free = random_.one_in(5);
    both("enqueue " + std::to_string(asked.number),
         [&](LockTable& table) { return table.enqueue(session, asked, now_); });
  }
  void release(SessionId session) {
    LockTable::State state = or_throw(memory_.state(session));
    TicketNumber number = a_number();
    TokenBlock tokens{1 + random_.below(20), 1};
    if (!state.tickets.empty() && !random_.one_in(5)) {
      const LockTable::Mine& mine =
          state.tickets[random_.below(static_cast<unsigned>(state.tickets.size()))];
      number = mine.number;
      tokens = mine.tokens;
      tokens.first += random_.one_in(8);
    }
    both("release", [&](LockTable& table) { return table.release(session, number, tokens, now_); });
  }

  void compare_states() {
    for (SessionId session = 1; session <= kSessions; ++session) {
      both("state of " + std::to_string(session),
           [&](LockTable& table) { return table.state(session); });
    }
    both("report", [&](LockTable& table) { return table.report({}, now_); });
    both("report of one", [&](LockTable& table) { return table.report("resource 1", now_); });
    expect_sound(*sqlite_, now_);
  }

  static std::uint32_t capacity_of(const std::string& resource) {
    return resource.back() == '0' ? 1 : 3;
  }
  TicketNumber a_number() {
    return 1 + random_.below(static_cast<unsigned>(std::max<TicketNumber>(last_number_, 1)));
  }
  std::vector<TicketNumber> some_numbers() {
    std::vector<TicketNumber> some(random_.below(5));
    for (TicketNumber& each : some) each = a_number();
    return some;
  }

  Random random_;
  MemoryTable memory_;
  std::unique_ptr<SqliteTable> sqlite_;
  std::int64_t now_ = 1000;
  TicketNumber last_number_ = 0;
};

TEST(SqliteTableProperty, DoesWhatATableInMemoryDoes) {
  TemporaryDirectory directory(TemporaryDirectory::where_syncs_are_cheap());
  const char* given = std::getenv("WEFT_SEED");
  std::uint64_t first = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  for (std::uint64_t seed = first; seed < first + (given ? 1 : kSeeds) && !HasFailure(); ++seed) {
    SCOPED_TRACE("WEFT_SEED=" + std::to_string(seed));
    Comparison comparison(seed, directory.file("locks" + std::to_string(seed) + ".db"));
    comparison.run();
  }
}

}  // namespace
