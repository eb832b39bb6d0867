// SPDX-License-Identifier: MIT
#pragma once
// The conformance suite of lock stores: what lock_store.h promises, whoever keeps the queue.
//
//     struct Memory {
//       using Loop = testing::VirtualLoop;
//       std::unique_ptr<durable::LockStore> make();           // another session on the same store, which is this object's
//       std::chrono::nanoseconds lease();                     // the shortest that the store can do
//     };
//     INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreSuite, Memory);
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/store_session.h"

namespace weft::test {

template <class Factory>
class StoreSuite : public ::testing::Test {
 protected:
  void with(std::size_t count, std::function<Task<void>(Sessions&)> body) {
    Long many{factory};
    with_sessions(loop, many, count, std::move(body));
  }
  // For those who watch leases end.
  void with_short_leases(std::size_t count, std::function<Task<void>(Sessions&)> body) {
    with_sessions(loop, factory, count, std::move(body));
  }
  static durable::LockError::Kind kind(const auto& result) {
    return result ? durable::LockError::Kind{} : result.error().kind();
  }

  typename Factory::Loop loop;
  Factory factory;

 private:
  struct Long {
    std::unique_ptr<durable::LockStore> make() { return of.make(); }
    static std::chrono::nanoseconds lease() { return std::chrono::seconds(60); }
    Factory& of;
  };
};
TYPED_TEST_SUITE_P(StoreSuite);

using durable::LockError;
using durable::LockResult;
using durable::Placed;
using durable::ResourceReport;
using durable::Standing;
using durable::TicketNumber;
using durable::TokenBlock;

// How many tickets a resource has, as everybody sees it.
inline Task<std::size_t> ticket_count(StoreSession& session, std::string resource) {
  auto all = or_throw(co_await session->report(resource));
  co_return all.empty() ? 0 : all[0].tickets.size();
}

// --- The queue --------------------------------------------------------------------------------------

TYPED_TEST_P(StoreSuite, WhatIsFreeIsGrantedAtOnce) {
  this->with(1, [](Sessions& s) -> Task<void> {
    Placed placed = or_throw(co_await s[0].enqueue("a", 1));
    EXPECT_EQ(placed.standing, Standing::granted);
    EXPECT_GE(placed.tokens.count, 8u);
    EXPECT_GT(placed.tokens.first, 0u);
    EXPECT_EQ(placed.ahead, 0u);
    or_throw(co_await s[0]->release(1, placed.tokens));
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 0u);
  });
}

TYPED_TEST_P(StoreSuite, TicketsAreGrantedInTheOrderOfArrival) {
  this->with(3, [](Sessions& s) -> Task<void> {
    Placed first = or_throw(co_await s[0].enqueue("a", 1));
    for (std::size_t i = 1; i < 3; ++i) {
      Placed waits = or_throw(co_await s[i].enqueue("a", 1));
      EXPECT_EQ(waits.standing, Standing::queued);
      EXPECT_EQ(waits.ahead, i);
    }
    Placed last = or_throw(co_await s[0].enqueue("a", 2));
    EXPECT_EQ(last.ahead, 3u);
    TokenBlock tokens = first.tokens;
    or_throw(co_await s[0]->release(1, tokens));
    for (std::size_t i = 1; i < 3; ++i) {
      TokenBlock next = co_await s[i].until_granted(1);
      EXPECT_GE(next.first, tokens.first + tokens.count);
      EXPECT_FALSE(s[0].was_granted(2));
      tokens = next;
      or_throw(co_await s[i]->release(1, tokens));
    }
    TokenBlock next = co_await s[0].until_granted(2);
    EXPECT_GE(next.first, tokens.first + tokens.count);
  });
}

TYPED_TEST_P(StoreSuite, NothingOvertakesWhatDoesNotFit) {
  this->with(2, [](Sessions& s) -> Task<void> {
    Placed one = or_throw(co_await s[0].enqueue("a", 1, 1, 10));
    Placed two = or_throw(co_await s[1].enqueue("a", 1, 1, 10));
    EXPECT_EQ(one.standing, Standing::granted);
    EXPECT_EQ(two.standing, Standing::granted);
    Placed all = or_throw(co_await s[0].enqueue("a", 2, 10, 10));
    Placed late = or_throw(co_await s[1].enqueue("a", 2, 1, 10));
    EXPECT_EQ(all.standing, Standing::queued);
    EXPECT_EQ(late.standing, Standing::queued) << "a reader overtook a writer";
    or_throw(co_await s[0]->release(1, one.tokens));
    or_throw(co_await s[1]->release(1, two.tokens));
    TokenBlock tokens = co_await s[0].until_granted(2);
    EXPECT_FALSE(s[1].was_granted(2));
    or_throw(co_await s[0]->release(2, tokens));
    static_cast<void>(co_await s[1].until_granted(2));
  });
}

TYPED_TEST_P(StoreSuite, ASemaphoreHasSoManyHolders) {
  this->with(2, [](Sessions& s) -> Task<void> {
    std::vector<Placed> placed;
    for (TicketNumber i = 0; i < 5; ++i)
      placed.push_back(or_throw(co_await s[i % 2].enqueue("a", 10 + i, 1, 3)));
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(placed[i].standing, i < 3 ? Standing::granted : Standing::queued) << i;
    }
    EXPECT_EQ(placed[3].ahead, 3u);
    EXPECT_EQ(placed[4].ahead, 4u);
    or_throw(co_await s[1]->release(11, placed[1].tokens));
    static_cast<void>(co_await s[1].until_granted(13));
    EXPECT_FALSE(s[0].was_granted(14));
    or_throw(co_await s[0]->release(10, placed[0].tokens));
    static_cast<void>(co_await s[0].until_granted(14));
  });
}

TYPED_TEST_P(StoreSuite, OnlyIfFreeNeverWaits) {
  this->with(2, [](Sessions& s) -> Task<void> {
    Placed got = or_throw(co_await s[0].try_enqueue("a", 1, 1, 2));
    EXPECT_EQ(got.standing, Standing::granted);
    Placed beside = or_throw(co_await s[1].try_enqueue("a", 1, 1, 2));
    EXPECT_EQ(beside.standing, Standing::granted);
    Placed full = or_throw(co_await s[1].try_enqueue("a", 2, 1, 2));
    EXPECT_EQ(full.standing, Standing::refused);
    EXPECT_EQ(full.ahead, 2u);
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 2u) << "a refused ticket is there";
    or_throw(co_await s[0]->release(1, got.tokens));
    Placed whole = or_throw(co_await s[0].try_enqueue("a", 2, 2, 2));
    EXPECT_EQ(whole.standing, Standing::refused);
    Placed waits = or_throw(co_await s[0].enqueue("a", 3, 2, 2));
    EXPECT_EQ(waits.standing, Standing::queued);
    Placed behind = or_throw(co_await s[1].try_enqueue("a", 3, 1, 2));
    EXPECT_EQ(behind.standing, Standing::refused) << "it overtook who waits";
  });
}

TYPED_TEST_P(StoreSuite, OfManyThatOnlyWantItIfFreeOneHasIt) {
  this->with(4, [](Sessions& s) -> Task<void> {
    for (TicketNumber round = 1; round <= 5; ++round) {
      std::vector<Task<LockResult<Placed>>> tries;
      for (std::size_t i = 0; i < 4; ++i) tries.push_back(s[i].try_enqueue("a", round));
      auto placed = or_throw(co_await all_of(std::move(tries)));
      std::size_t granted = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        if (placed[i].standing != Standing::granted) {
          EXPECT_EQ(placed[i].standing, Standing::refused);
          continue;
        }
        ++granted;
        or_throw(co_await s[i]->release(round, placed[i].tokens));
      }
      EXPECT_EQ(granted, 1u);
    }
  });
}

TYPED_TEST_P(StoreSuite, ResourcesDoNotMix) {
  this->with(1, [](Sessions& s) -> Task<void> {
    const std::vector<std::string> names{"a", "a/b", "a/t",      "a%2Fb",      "a b",
                                         "ä", "..",  "capacity", "a/capacity", "0"};
    TicketNumber number = 0;
    for (const std::string& name : names) {
      Placed placed = or_throw(co_await s[0].enqueue(name, ++number));
      EXPECT_EQ(placed.standing, Standing::granted) << name;
    }
    auto all = or_throw(co_await s[0]->report(std::nullopt));
    std::set<std::string> seen;
    for (const ResourceReport& each : all) seen.insert(each.resource);
    EXPECT_EQ(seen, std::set<std::string>(names.begin(), names.end()));
    EXPECT_EQ(or_throw(co_await s[0]->revoke("a")), 1u);
    EXPECT_EQ(co_await ticket_count(s[0], "a/b"), 1u);
  });
}

// --- Ends of a ticket -------------------------------------------------------------------------------

TYPED_TEST_P(StoreSuite, WhoWithdrawsIsSkipped) {
  this->with(3, [](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    static_cast<void>(or_throw(co_await s[2].enqueue("a", 1)));
    or_throw(co_await s[1]->withdraw(1));
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 2u);
    or_throw(co_await s[0]->release(1, held.tokens));
    static_cast<void>(co_await s[2].until_granted(1));
    EXPECT_FALSE(s[1].was_granted(1));
    EXPECT_FALSE(s[1].is_gone(1)) << "it was told of what it did itself";
  });
}

TYPED_TEST_P(StoreSuite, AGrantedTicketCanBeWithdrawn) {
  this->with(2, [](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    or_throw(co_await s[0]->withdraw(1));
    static_cast<void>(co_await s[1].until_granted(1));
    LockResult<> late = co_await s[0]->release(1, held.tokens);
    EXPECT_EQ(TestFixture::kind(late), LockError::not_owner);
  });
}

TYPED_TEST_P(StoreSuite, WithdrawingWhatIsNotThereIsDone) {
  this->with(1, [](Sessions& s) -> Task<void> { or_throw(co_await s[0]->withdraw(99)); });
}

TYPED_TEST_P(StoreSuite, OnlyItsTokensReleaseATicket) {
  this->with(2, [](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    TokenBlock other = held.tokens;
    ++other.first;
    LockResult<> wrong = co_await s[0]->release(1, other);
    EXPECT_EQ(TestFixture::kind(wrong), LockError::not_owner);
    LockResult<> foreign = co_await s[1]->release(1, held.tokens);
    EXPECT_EQ(TestFixture::kind(foreign), LockError::not_owner)
        << "a queued ticket was released with another's tokens";
    LockResult<> unknown = co_await s[0]->release(2, held.tokens);
    EXPECT_EQ(TestFixture::kind(unknown), LockError::not_owner);
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 2u);
    EXPECT_FALSE(s[1].was_granted(1));
    or_throw(co_await s[0]->release(1, held.tokens));
    static_cast<void>(co_await s[1].until_granted(1));
    LockResult<> twice = co_await s[0]->release(1, held.tokens);
    EXPECT_EQ(TestFixture::kind(twice), LockError::not_owner);
    EXPECT_EQ(co_await ticket_count(s[1], "a"), 1u)
        << "an old release freed the next holder's ticket";
  });
}

TYPED_TEST_P(StoreSuite, WhoDoesNotRenewIsPassedOver) {
  const auto lease = this->factory.lease();
  this->with_short_leases(3, [lease](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 2)));  // a dead waiter, too
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    const TimePoint begun = now();
    // Session 0 does nothing from now on; session 1 renews.
    auto renew = [&]() -> Task<void> {
      while (true) {
        co_await sleep_for(lease / 3);
        std::vector<TicketNumber> mine{1};
        EXPECT_TRUE(or_throw(co_await s[1]->renew(std::move(mine))).empty());
      }
    };
    TokenBlock next = co_await with(renew, s[1].until_granted(1));
    EXPECT_GE(now() - begun, lease - lease / 10) << "the lease was cut short";
    EXPECT_GT(next.first, held.tokens.first);
    co_await s[0].until_gone(1);
    co_await s[0].until_gone(2);
    LockResult<> late = co_await s[0]->release(1, held.tokens);
    EXPECT_EQ(TestFixture::kind(late), LockError::not_owner);
    std::vector<TicketNumber> old{1, 2};
    auto missing = or_throw(co_await s[0]->renew(std::move(old)));
    std::ranges::sort(missing);
    EXPECT_EQ(missing, (std::vector<TicketNumber>{1, 2}));
  });
}

// Whoever comes looks at the leases of those who are there.
TYPED_TEST_P(StoreSuite, WhoComesShortlyBeforeALeaseEndsWaits) {
  const auto lease = this->factory.lease();
  this->with_short_leases(2, [lease](Sessions& s) -> Task<void> {
    const TimePoint begun = now();
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 1)));
    co_await sleep_for(lease * 17 / 20);
    Placed late = or_throw(co_await s[1].try_enqueue("a", 1));
    const bool in_time = now() - begun < lease;  // or this machine is too busy to tell
    if (in_time) {
      EXPECT_EQ(late.standing, Standing::refused);
    }
  });
}

TYPED_TEST_P(StoreSuite, WhoRenewsKeepsIt) {
  const auto lease = this->factory.lease();
  this->with_short_leases(2, [lease](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    for (int third = 0; third < 6; ++third) {
      co_await sleep_for(lease / 3);
      for (std::size_t i = 0; i < 2; ++i) {
        std::vector<TicketNumber> asked{1, 77};
        const auto missing = or_throw(co_await s[i]->renew(std::move(asked)));
        const std::vector<TicketNumber> unknown{77};
        EXPECT_EQ(missing, unknown);
      }
    }
    EXPECT_FALSE(s[1].was_granted(1));
    or_throw(co_await s[0]->release(1, held.tokens));
    static_cast<void>(co_await s[1].until_granted(1));
  });
}

TYPED_TEST_P(StoreSuite, ATicketHasItsWholeLeaseWhateverCameBefore) {
  const auto lease = this->factory.lease();
  this->with_short_leases(2, [lease](Sessions& s) -> Task<void> {
    Placed first = or_throw(co_await s[0].enqueue("a", 1));
    or_throw(co_await s[0]->release(1, first.tokens));
    co_await sleep_for(lease * 3 / 4);
    const TimePoint begun = now();
    Placed second = or_throw(co_await s[0].enqueue("a", 2));
    EXPECT_EQ(second.standing, Standing::granted);
    co_await sleep_until(begun + lease * 4 / 5);
    EXPECT_EQ(co_await ticket_count(s[1], "a"), 1u) << "it ended with an older ticket's lease";
    or_throw(co_await s[0]->release(2, second.tokens));
  });
}

TYPED_TEST_P(StoreSuite, RevokeEndsThemAllAndTellsBothSides) {
  this->with(3, [](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    Placed elsewhere = or_throw(co_await s[1].enqueue("b", 2));
    EXPECT_EQ(or_throw(co_await s[2]->revoke("a")), 2u);
    co_await s[0].until_gone(1);
    co_await s[1].until_gone(1);
    EXPECT_FALSE(s[1].was_granted(1));
    EXPECT_FALSE(s[1].is_gone(2));
    EXPECT_EQ(or_throw(co_await s[2]->revoke("a")), 0u);
    Placed next = or_throw(co_await s[1].enqueue("a", 3));
    EXPECT_EQ(next.standing, Standing::granted);
    EXPECT_GE(next.tokens.first, held.tokens.first + held.tokens.count) << "tokens went back";
    or_throw(co_await s[1]->release(2, elsewhere.tokens));
  });
}

TYPED_TEST_P(StoreSuite, WhatASessionLeavesEndsWithItsLease) {
  this->with_short_leases(2, [](Sessions& s) -> Task<void> {
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 1)));
  });
  // Both sessions are closed, or will never renew.
  this->with(1, [](Sessions& s) -> Task<void> {
    Placed placed = or_throw(co_await s[0].enqueue("a", 1));
    if (placed.standing == Standing::queued) static_cast<void>(co_await s[0].until_granted(1));
  });
}

// --- Again, and at the same time ----------------------------------------------------------------------

TYPED_TEST_P(StoreSuite, ARepeatedCallFindsItsWorkDone) {
  this->with(2, [](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 1));
    or_throw(co_await s[0]->join("a", 1));
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    Placed again = or_throw(co_await s[0].enqueue("a", 1));
    EXPECT_EQ(again.standing, Standing::granted);
    EXPECT_EQ(again.tokens, held.tokens);
    Placed waits = or_throw(co_await s[1].enqueue("a", 1));
    Placed still = or_throw(co_await s[1].enqueue("a", 1));
    EXPECT_EQ(still.standing, Standing::queued);
    EXPECT_EQ(still.ahead, waits.ahead);
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 2u);
    or_throw(co_await s[1]->withdraw(1));
    or_throw(co_await s[1]->withdraw(1));
    or_throw(co_await s[0]->release(1, held.tokens));
    EXPECT_TRUE(or_throw(co_await s[0]->retire("a")));
    EXPECT_TRUE(or_throw(co_await s[0]->retire("a")));
  });
}

TYPED_TEST_P(StoreSuite, ACancelledEnqueueLeavesNothingOnceWithdrawn) {
  this->with(2, [](Sessions& s) -> Task<void> {
    for (TicketNumber number = 1; number <= 30; ++number) {
      const auto cut = std::chrono::microseconds(60 * number);
      auto placed = co_await timeout(cut, s[0].enqueue("a", number));
      if (placed) or_throw(std::move(*placed));
      or_throw(co_await s[0]->withdraw(number));
    }
    // One that arrives late is swept away.
    std::size_t left = 1;
    for (int i = 0; i < 100 && left > 0; ++i) {
      left = co_await ticket_count(s[1], "a");
      if (left > 0) co_await sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(left, 0u);
  });
}

TYPED_TEST_P(StoreSuite, AResourceIsForgottenOnlyWithoutTickets) {
  this->with(2, [](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 1));
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    EXPECT_FALSE(or_throw(co_await s[1]->retire("a")));
    or_throw(co_await s[0]->release(1, held.tokens));
    EXPECT_FALSE(or_throw(co_await s[0]->retire("a")));
    TokenBlock next = co_await s[1].until_granted(1);
    or_throw(co_await s[1]->release(1, next));
    EXPECT_TRUE(or_throw(co_await s[0]->retire("a")));
    auto all = or_throw(co_await s[0]->report(std::nullopt));
    EXPECT_TRUE(all.empty()) << "something is left behind";
    // Tokens rise across it, and who comes later starts afresh, with another capacity if he likes.
    Placed fresh = or_throw(co_await s[0].enqueue("a", 2, 1, 7));
    EXPECT_GE(fresh.tokens.first, next.first + next.count);
  });
}

TYPED_TEST_P(StoreSuite, RetireAndEnqueueAtTheSameTime) {
  this->with(2, [](Sessions& s) -> Task<void> {
    for (TicketNumber round = 1; round <= 25; ++round) {
      or_throw(co_await s[0]->join("a", 3));
      auto [retired, placed] =
          or_throw(co_await all_of(s[0]->retire("a"), s[1].enqueue("a", round, 3, 3)));
      static_cast<void>(retired);
      EXPECT_EQ(placed.standing, Standing::granted);
      LockResult<> other = co_await s[0]->join("a", 4);
      EXPECT_EQ(TestFixture::kind(other), LockError::mismatch)
          << "a ticket whose resource was forgotten";
      or_throw(co_await s[1]->release(round, placed.tokens));
    }
  });
}

TYPED_TEST_P(StoreSuite, AnotherCapacityIsAMismatch) {
  this->with(2, [](Sessions& s) -> Task<void> {
    or_throw(co_await s[0]->join("a", 3));
    LockResult<> joined = co_await s[1]->join("a", 4);
    EXPECT_EQ(TestFixture::kind(joined), LockError::mismatch);
    LockResult<Placed> placed = co_await s[1].enqueue("a", 1, 1, 4);
    EXPECT_EQ(TestFixture::kind(placed), LockError::mismatch);
    LockResult<Placed> tried = co_await s[1].try_enqueue("a", 2, 1, 4);
    EXPECT_EQ(TestFixture::kind(tried), LockError::mismatch);
    EXPECT_EQ(co_await ticket_count(s[0], "a"), 0u);
    // Also without a join.
    static_cast<void>(or_throw(co_await s[0].enqueue("b", 1, 1, 2)));
    LockResult<Placed> other = co_await s[1].enqueue("b", 3, 1, 1);
    EXPECT_EQ(TestFixture::kind(other), LockError::mismatch);
  });
}

TYPED_TEST_P(StoreSuite, ManySessionsHandItOnOneByOne) {
  this->with(4, [](Sessions& s) -> Task<void> {
    int holders = 0, turns = 0;
    std::uint64_t last = 0;
    auto play = [&](std::size_t which) -> Task<void> {
      for (TicketNumber round = 1; round <= 6; ++round) {
        Placed placed = or_throw(co_await s[which].enqueue("a", round));
        TokenBlock tokens = placed.tokens;
        if (placed.standing == Standing::queued) tokens = co_await s[which].until_granted(round);
        EXPECT_EQ(++holders, 1);
        EXPECT_GT(tokens.first, last);
        last = tokens.first + tokens.count - 1;
        ++turns;
        co_await yield();
        --holders;
        or_throw(co_await s[which]->release(round, tokens));
      }
    };
    co_await all_of(play(0), play(1), play(2), play(3));
    EXPECT_EQ(turns, 24);
  });
}

// --- What others see ----------------------------------------------------------------------------------

TYPED_TEST_P(StoreSuite, AReportSaysWhoHoldsAndWhoWaits) {
  const auto lease = this->factory.lease();
  this->with_short_leases(3, [lease](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1, 2, 3));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1, 3, 3)));
    static_cast<void>(or_throw(co_await s[1].enqueue("b", 2)));
    auto one = or_throw(co_await s[2]->report("a"));
    EXPECT_EQ(one.size(), 1u);
    if (one.size() != 1 || one[0].tickets.size() != 2) co_return;
    EXPECT_EQ(one[0].resource, "a");
    EXPECT_EQ(one[0].capacity, 3u);
    const auto& first = one[0].tickets[0];
    const auto& second = one[0].tickets[1];
    EXPECT_TRUE(first.granted);
    EXPECT_EQ(first.token, held.tokens.first);
    EXPECT_EQ(first.owner, "session 0");
    EXPECT_EQ(first.weight, 2u);
    EXPECT_FALSE(second.granted);
    EXPECT_EQ(second.owner, "session 1");
    EXPECT_EQ(second.weight, 3u);
    for (const auto& each : one[0].tickets) {
      EXPECT_GE(each.age, each.age.zero());
      EXPECT_LT(each.age, std::chrono::seconds(10));
      EXPECT_GE(each.lease_left, each.lease_left.zero());
      EXPECT_LE(each.lease_left, lease + std::chrono::seconds(2));
    }
    auto all = or_throw(co_await s[2]->report(std::nullopt));
    EXPECT_EQ(all.size(), 2u);
    auto none = or_throw(co_await s[2]->report("c"));
    EXPECT_TRUE(none.empty());
  });
}

REGISTER_TYPED_TEST_SUITE_P(
    StoreSuite, WhatIsFreeIsGrantedAtOnce, TicketsAreGrantedInTheOrderOfArrival,
    NothingOvertakesWhatDoesNotFit, ASemaphoreHasSoManyHolders, OnlyIfFreeNeverWaits,
    OfManyThatOnlyWantItIfFreeOneHasIt, ResourcesDoNotMix, WhoWithdrawsIsSkipped,
    AGrantedTicketCanBeWithdrawn, WithdrawingWhatIsNotThereIsDone, OnlyItsTokensReleaseATicket,
    WhoDoesNotRenewIsPassedOver, WhoComesShortlyBeforeALeaseEndsWaits, WhoRenewsKeepsIt,
    ATicketHasItsWholeLeaseWhateverCameBefore, RevokeEndsThemAllAndTellsBothSides,
    WhatASessionLeavesEndsWithItsLease, ARepeatedCallFindsItsWorkDone,
    ACancelledEnqueueLeavesNothingOnceWithdrawn, AResourceIsForgottenOnlyWithoutTickets,
    RetireAndEnqueueAtTheSameTime, AnotherCapacityIsAMismatch, ManySessionsHandItOnOneByOne,
    AReportSaysWhoHoldsAndWhoWaits);

}  // namespace weft::test
