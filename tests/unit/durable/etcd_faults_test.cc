// SPDX-License-Identifier: MIT
// Answers that are lost, requests that come late, watches that say nothing: on a real etcd, behind a faulty transport.
#include <gtest/gtest.h>

#include "support/etcd.h"
#include "support/faulty_transport.h"
#include "support/store_suite.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

struct FaultyFactory {
  std::unique_ptr<durable::LockStore> make() { return faulty_store(etcd.url(prefix), faults); }
  [[nodiscard]] std::chrono::nanoseconds lease() const { return length; }

  Etcd& etcd = shared_etcd();
  std::string prefix = fresh_prefix();
  Faults faults;
  std::chrono::nanoseconds length = 5s;
};

class EtcdFaults : public ::testing::Test {
 protected:
  void with(std::size_t count, std::function<Task<void>(Sessions&)> body) {
    with_sessions(loop, factory, count, std::move(body));
  }
  template <class R>
  static LockError::Kind kind(const R& result) {
    return result ? LockError::Kind{} : result.error().kind();
  }
  // The store forgets how it came to be as it is now.
  Task<void> compact() {
    std::string range = co_await factory.etcd.ask("/v3/kv/range", R"({"key":"YQ=="})");
    const std::size_t at = range.find("\"revision\":\"") + 12;
    const std::string revision = range.substr(at, range.find('"', at) - at);
    std::string request = R"({"revision":")" + revision + R"("})";
    co_await factory.etcd.ask("/v3/kv/compaction", std::move(request));
  }
  EventLoop loop;
  FaultyFactory factory;
  Faults& faults = factory.faults;
};

constexpr const char* kTxn = "/v3/kv/txn";
constexpr const char* kDelete = "/v3/kv/deleterange";

TEST_F(EtcdFaults, AnEnqueueWhoseAnswerIsLostFindsItsTicket) {
  with(1, [&](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 1));
    faults.first(kTxn, Fault::lose);
    Placed placed = or_throw(co_await s[0].enqueue("a", 1));
    EXPECT_EQ(placed.standing, Standing::granted);
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 1u);
    const std::string from = durable::etcd::base64_encoded(factory.prefix + "/r/a/t/");
    const std::string to = durable::etcd::base64_encoded(factory.prefix + "/r/a/t0");
    std::string range = R"({"key":")" + from + R"(","range_end":")" + to + R"("})";
    const std::string pairs = co_await factory.etcd.ask("/v3/kv/range", std::move(range));
    EXPECT_TRUE(pairs.contains(R"("version":"1")")) << "it was written twice: " << pairs;
    or_throw(co_await s[0]->release(1, placed.tokens));
  });
}

TEST_F(EtcdFaults, OnlyIfFreeWhoseAnswerIsLostIsNotInItsOwnWay) {
  with(1, [&](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 1));
    faults.first(kTxn, Fault::lose, 2);
    Placed placed = or_throw(co_await s[0].try_enqueue("a", 1));
    EXPECT_EQ(placed.standing, Standing::granted);
  });
}

TEST_F(EtcdFaults, AReleaseWhoseAnswerIsLostIsDone) {
  with(2, [&](Sessions& s) -> Task<void> {
    Placed placed = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    faults.first(kTxn, Fault::lose);
    or_throw(co_await s[0]->release(1, placed.tokens));
    static_cast<void>(co_await s[1].until_granted(1));
    EXPECT_FALSE(s[0].is_gone(1));
  });
}

TEST_F(EtcdFaults, AReleaseThatWasCancelledCanBeMadeAgain) {
  with(1, [&](Sessions& s) -> Task<void> {
    Placed placed = or_throw(co_await s[0].enqueue("a", 1));
    // It is carried out, over and over; nobody hears of it.
    faults.first(kTxn, Fault::lose, 1000);
    auto cut = co_await timeout(100ms, s[0]->release(1, placed.tokens));
    EXPECT_FALSE(cut);
    faults.decide = {};
    or_throw(co_await s[0]->release(1, placed.tokens));
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 0u);
  });
}

TEST_F(EtcdFaults, TheOthersMayLoseTheirAnswersToo) {
  with(1, [&](Sessions& s) -> Task<void> {
    faults.first(kTxn, Fault::lose);
    or_throw(co_await s[0]->join("a", 2));
    faults.first("/v3/lease/grant", Fault::lose, 2);
    Placed placed = or_throw(co_await s[0].enqueue("a", 1, 1, 2));
    EXPECT_EQ(placed.standing, Standing::granted);
    faults.first("/v3/lease/keepalive", Fault::lose);
    std::vector<TicketNumber> mine{1};
    EXPECT_TRUE(or_throw(co_await s[0]->renew(std::move(mine))).empty());
    faults.first(kDelete, Fault::lose);
    or_throw(co_await s[0]->withdraw(1));
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 0u);
    faults.first(kTxn, Fault::lose);
    EXPECT_TRUE(or_throw(co_await s[0]->retire("a")));
  });
}

TEST_F(EtcdFaults, APutThatArrivesAfterItsTicketWasWithdrawnIsSweptAway) {
  factory.length = 30s;
  auto body = [&](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 1));
    auto inside = [&](Nursery& nursery) -> Task<NurseryEnd> {
      faults.nursery = &nursery;
      faults.first(kTxn, Fault::late);
      Placed placed = or_throw(co_await s[0].enqueue("a", 1));
      EXPECT_EQ(placed.standing, Standing::granted);
      or_throw(co_await s[0]->withdraw(1));
      // Keeps the session's lease alive, and so the stray.
      static_cast<void>(or_throw(co_await s[0].enqueue("b", 2)));
      co_return {};
    };
    co_await with_nursery(inside);
    EXPECT_EQ(faults.late_arrivals, 1);
    EXPECT_EQ(co_await ticket_count(s[1], "a"), 1u) << "the test is about a stray that is there";
    Placed behind = or_throw(co_await s[1].enqueue("a", 1));
    EXPECT_EQ(behind.standing, Standing::queued);
    static_cast<void>(co_await s[1].until_granted(1));
    EXPECT_FALSE(s[0].was_granted(1));
    EXPECT_EQ(co_await ticket_count(s[1], "b"), 1u);
  };
  with(2, body);
}

TEST_F(EtcdFaults, ATicketThatIsNotRenewedEndsWhateverElseTheSessionRenews) {
  factory.length = 1s;
  faults.call_timeout = 300ms;
  with(2, [&](Sessions& s) -> Task<void> {
    Placed failed = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[0].enqueue("b", 2)));  // held for too long, say
    static_cast<void>(or_throw(co_await s[0].enqueue("c", 3)));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    static_cast<void>(or_throw(co_await s[1].enqueue("b", 2)));
    faults.decide = [](const durable::etcd::Question& question) {
      return question.json.contains("request_delete_range") ? Fault::refuse : Fault::none;
    };
    durable::LockResult<> released = co_await s[0]->release(1, failed.tokens);
    EXPECT_EQ(kind(released), LockError::unreachable);
    auto renew = [&]() -> Task<void> {
      while (true) {
        std::vector<TicketNumber> mine{3}, waiting{1, 2};
        EXPECT_TRUE(or_throw(co_await s[0]->renew(std::move(mine))).empty());
        EXPECT_TRUE(or_throw(co_await s[1]->renew(std::move(waiting))).empty());
        co_await sleep_for(300ms);
      }
    };
    auto wait = [&]() -> Task<void> {
      static_cast<void>(co_await s[1].until_granted(1));
      static_cast<void>(co_await s[1].until_granted(2));
    };
    co_await any_of(renew, wait);
    EXPECT_EQ(co_await ticket_count(s[0], "c"), 1u);
  });
}

TEST_F(EtcdFaults, ALeaseServesTheNextTicketUnlessItIsInDoubt) {
  auto grants = std::make_shared<int>(0);
  auto count = [grants](const durable::etcd::Question& question) {
    *grants += question.path == "/v3/lease/grant";
    return Fault::none;
  };
  with(1, [&](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 1));  // capacities have a lease of their own
    faults.decide = count;
    for (TicketNumber number = 1; number <= 3; ++number) {
      Placed placed = or_throw(co_await s[0].enqueue("a", number));
      EXPECT_EQ(or_throw(co_await s[0].try_enqueue("a", 100 + number)).standing, Standing::refused);
      or_throw(co_await s[0]->release(number, placed.tokens));
    }
    EXPECT_EQ(*grants, 2);  // at most two at a time
    static_cast<void>(or_throw(co_await s[0].enqueue("b", 10)));
    faults.first(kTxn, Fault::lose);
    Placed doubtful = or_throw(co_await s[0].enqueue("a", 11));
    or_throw(co_await s[0]->release(11, doubtful.tokens));
    faults.decide = count;
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 12)));
    EXPECT_EQ(*grants, 3);  // a put of 11 may come late, and would stay as long as 12 is renewed
  });
}

TEST_F(EtcdFaults, WhatIsGivenBackWhileItIsRenewedIsNotMissing) {
  with(1, [&](Sessions& s) -> Task<void> {
    for (TicketNumber number : {1, 2}) {
      Placed placed = or_throw(co_await s[0].enqueue("a", number));
      // The release is over, or under way, when the renewal looks who is there.
      faults.decide = [number](const durable::etcd::Question& question) {
        const bool is_slow = question.path == "/v3/lease/keepalive" ||
                             (number == 2 && question.json.contains("request_delete_range"));
        return is_slow ? Fault::slow : Fault::none;
      };
      std::vector<TicketNumber> mine{number};
      auto renew = [&]() -> Task<void> {
        EXPECT_TRUE(or_throw(co_await s[0]->renew(mine)).empty()) << number;
      };
      auto release = [&]() -> Task<void> {
        co_await sleep_for(50ms);  // the renewal is under way
        or_throw(co_await s[0]->release(number, placed.tokens));
      };
      co_await all_of(renew(), release());
      faults.decide = {};
    }
  });
}

TEST_F(EtcdFaults, ATicketThatEndedBeforeItsAnswerCameIsNotGranted) {
  with(2, [&](Sessions& s) -> Task<void> {
    or_throw(co_await s[1]->join("a", 1));
    faults.first(kTxn, Fault::slow);
    auto revoke = [&]() -> Task<void> {
      std::size_t there = 0;
      while (there == 0) there = co_await ticket_count(s[1], "a");
      EXPECT_EQ(or_throw(co_await s[1]->revoke("a")), 1u);
    };
    auto enqueue = [&]() -> Task<void> {
      Placed placed = or_throw(co_await s[0].enqueue("a", 1));
      EXPECT_NE(placed.standing, Standing::granted);
    };
    co_await all_of(enqueue(), revoke());
    co_await s[0].until_gone(1);
  });
}

TEST_F(EtcdFaults, ACapacityEndsByItselfAndItsTicketsKeepIt) {
  auto raw = [&](const char* path, std::string key) -> Task<std::string> {
    std::string json =
        R"({"key":")" + durable::etcd::base64_encoded(factory.prefix + key) + R"("})";
    co_return co_await factory.etcd.ask(path, std::move(json));
  };
  with(2, [&](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 3));
    std::string there = co_await raw("/v3/kv/range", "/r/a/capacity");
    EXPECT_TRUE(there.contains(R"("lease":")")) << "for ever, if its process dies: " << there;
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 1, 1, 3)));
    co_await raw(kDelete, "/r/a/capacity");  // as if its lease had ended
    EXPECT_EQ(kind(co_await s[1]->join("a", 4)), LockError::mismatch);
    EXPECT_EQ(kind(co_await s[1].enqueue("a", 1, 1, 4)), LockError::mismatch);
    or_throw(co_await s[1]->join("a", 3));
    co_await raw(kDelete, "/r/a/capacity");
    EXPECT_EQ(or_throw(co_await s[1].enqueue("a", 2, 1, 3)).standing, Standing::granted);
    there = co_await raw("/v3/kv/range", "/r/a/capacity");
    EXPECT_TRUE(there.contains(R"("lease":")")) << there;
    EXPECT_EQ(or_throw(co_await s[1]->revoke("a")), 2u);
    or_throw(co_await s[1]->join("a", 4));  // nothing is left of the old one
  });
}

TEST_F(EtcdFaults, AGrantIsReadFromTheStoreBeforeItIsTold) {
  factory.length = 1s;
  with(2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    // Session 1 hears that it is its turn, but cannot ask until its lease has ended: as if it had been paused.
    int refused = 0;
    bool is_cut_off = true;
    faults.decide = [&](const durable::etcd::Question& question) {
      const bool is_confirmation = question.path == kTxn && question.json.contains("keys_only");
      if (!is_confirmation || !is_cut_off) return Fault::none;
      ++refused;
      return Fault::refuse;
    };
    or_throw(co_await s[0]->release(1, held.tokens));
    while (refused == 0) co_await sleep_for(5ms);
    // Nor does it hear of its end.
    faults.refuses_streams = true;
    faults.cut.set();
    std::size_t left = 1;
    while (left > 0) {
      co_await sleep_for(100ms);
      left = co_await ticket_count(s[0], "a");
    }
    is_cut_off = false;
    co_await s[1].until_gone(1);
    EXPECT_FALSE(s[1].was_granted(1)) << "granted after its lease had ended";
  });
}

TEST_F(EtcdFaults, ASessionThatIsClosedLeavesNothing) {
  factory.length = 60s;
  with(1, [](Sessions& s) -> Task<void> {
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 1)));
  });
  with(1, [](Sessions& s) -> Task<void> {
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 0u);
    EXPECT_EQ(or_throw(co_await s[0].enqueue("a", 1)).standing, Standing::granted);
  });
}

TEST_F(EtcdFaults, AWatchThatIsCutGoesOnWhereItWas) {
  with(2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    faults.cut.set();
    or_throw(co_await s[0]->release(1, held.tokens));
    faults.cut.reset();
    static_cast<void>(co_await s[1].until_granted(1));
    EXPECT_GE(faults.streams, 3);
  });
}

TEST_F(EtcdFaults, AWatchThatIsCompactedAwayListsEverything) {
  with(2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    Placed other = or_throw(co_await s[1].enqueue("b", 2));
    static_cast<void>(other);
    faults.cut.set();  // nobody hears anything, until
    co_await sleep_for(20ms);
    or_throw(co_await s[0]->release(1, held.tokens));
    EXPECT_EQ(or_throw(co_await s[0]->revoke("b")), 1u);
    co_await compact();
    faults.cut.reset();
    static_cast<void>(co_await s[1].until_granted(1));
    co_await s[1].until_gone(2);
  });
}

// A watch that begins at the revision that was compacted is no error to etcd, but what was deleted then it does not tell.
TEST_F(EtcdFaults, AWatchThatWouldBeginAtWhatWasCompactedMissesNothing) {
  factory.length = 60s;  // no renewal helps
  with(2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    static_cast<void>(or_throw(co_await s[1].enqueue("b", 2)));
    or_throw(co_await s[0]->release(1, held.tokens));
    static_cast<void>(co_await s[1].until_granted(1));
    faults.cut.set();
    co_await sleep_for(20ms);
    EXPECT_EQ(or_throw(co_await s[0]->revoke("b")), 1u);
    co_await compact();
    faults.cut.reset();
    co_await s[1].until_gone(2);
  });
}

TEST_F(EtcdFaults, AWatchThatSaysNothingIsReplaced) {
  faults.silent_streams = 1;
  faults.attempt_timeout = 400ms;
  factory.length = 60s;  // no renewal helps
  with(1, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 2)));
    or_throw(co_await s[0]->release(1, held.tokens));
    const TimePoint begun = now();
    static_cast<void>(co_await s[0].until_granted(2));
    EXPECT_LT(now() - begun, 2s);
    EXPECT_EQ(faults.streams, 2);
  });
}

TEST_F(EtcdFaults, ARenewalFindsTheGrantThatTheWatchDidNotTell) {
  faults.silent_streams = 1000;
  with(1, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 2)));
    or_throw(co_await s[0]->release(1, held.tokens));
    std::vector<TicketNumber> mine{2};
    EXPECT_TRUE(or_throw(co_await s[0]->renew(std::move(mine))).empty());
    static_cast<void>(co_await s[0].until_granted(2));
  });
}

TEST_F(EtcdFaults, NobodyIsAskedInABusyLoopWhenNobodyAnswers) {
  with(1, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 2)));
    // It is its turn, and it asks whether it is still there.
    Event asks;
    faults.decide = [&asks](const durable::etcd::Question& question) {
      if (!question.json.contains("keys_only")) return Fault::none;
      asks.set();
      return Fault::refuse;
    };
    or_throw(co_await s[0]->release(1, held.tokens));
    co_await asks.wait();
    faults.decide = [](const durable::etcd::Question&) { return Fault::refuse; };
    faults.cut.set();
    faults.calls = faults.streams = 0;
    co_await sleep_for(2s);
    EXPECT_GT(faults.calls, 1);
    EXPECT_LT(faults.calls, 30);
    EXPECT_LT(faults.streams, 30);
    faults.decide = {};
    faults.cut.reset();
    static_cast<void>(co_await s[0].until_granted(2));
  });
}

TEST_F(EtcdFaults, UnreachableWithinItsBound) {
  faults.call_timeout = 1s;
  with(1, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    faults.decide = [](const durable::etcd::Question&) { return Fault::refuse; };
    const TimePoint begun = now();
    const std::string a = "a", x = "x";  // they are referred to until the calls have ended
    std::vector<TicketNumber> mine{1};
    auto as = [](auto task) -> Task<LockError::Kind> {
      auto result = co_await std::move(task);
      co_return result ? LockError::Kind{} : result.error().kind();
    };
    std::vector<Task<LockError::Kind>> calls;
    calls.push_back(as(s[0]->join(x, 1)));
    calls.push_back(as(s[0].enqueue(a, 7)));
    calls.push_back(as(s[0]->renew(mine)));
    calls.push_back(as(s[0]->release(1, held.tokens)));
    calls.push_back(as(s[0]->withdraw(7)));
    calls.push_back(as(s[0]->retire(a)));
    calls.push_back(as(s[0]->revoke(a)));
    calls.push_back(as(s[0]->report(std::nullopt)));
    std::vector<LockError::Kind> kinds = co_await all_of(std::move(calls));
    for (LockError::Kind kind : kinds) EXPECT_EQ(kind, LockError::unreachable);
    EXPECT_GE(now() - begun, 1s);
    EXPECT_LT(now() - begun, 1500ms);
    faults.decide = {};
    or_throw(co_await s[0]->release(1, held.tokens));
    or_throw(co_await s[0]->withdraw(7));
  });
}

}  // namespace
}  // namespace weft::test
