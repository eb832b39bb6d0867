// SPDX-License-Identifier: MIT
// What lists and events mean for a queue and for the tickets of a session: no etcd in sight.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "durable/etcd/etcd_keys.h"
#include "durable/etcd/queue_view.h"
#include "durable/etcd/ticket_book.h"

namespace weft::durable::etcd {
namespace {

constexpr std::uint64_t kMe = 0xabc, kOther = 0xdef;
const Keys kKeys("p");

KeyValue ticket(std::uint64_t session, TicketNumber number, Revision revision,
                std::uint32_t weight = 1, std::uint32_t capacity = 1) {
  TicketValue value;
  value.weight = weight;
  value.capacity = capacity;
  KeyValue pair;
  pair.key = kKeys.ticket("a", session, number);
  pair.value = write_ticket(value);
  pair.created = pair.modified = revision;
  pair.lease = 5;
  return pair;
}
std::string key(std::uint64_t session, TicketNumber number) {
  return kKeys.ticket("a", session, number);
}

// --- Keys -------------------------------------------------------------------------------------------

TEST(EtcdKeys, ATicketsKeyIsReadBack) {
  for (std::string name : {"a", "a/b", "a b%", "ä/t/", "..", "capacity"}) {
    const std::optional<TicketKey> read = kKeys.parse_ticket(kKeys.ticket(name, kMe, 42));
    ASSERT_TRUE(read) << name;
    EXPECT_EQ(read->resource, name);
    EXPECT_EQ(read->session, kMe);
    EXPECT_EQ(read->number, 42u);
    EXPECT_EQ(kKeys.parse_capacity(kKeys.capacity(name)), name);
    EXPECT_FALSE(kKeys.parse_ticket(kKeys.capacity(name)));
  }
}

TEST(EtcdKeys, WhatIsNoKeyOfOurs) {
  for (std::string bad :
       {"", "p", "p/schema", "q/r/a/t/0000000000000abc/1", "p/r/a/t/abc/1",
        "p/r/a/t/0000000000000abc/", "p/r/a/t/0000000000000abc/x", "p/r/a/t/0000000000000abx/1",
        "p/r/%zz/t/0000000000000abc/1", "p/r/a/t/0000000000000abc/99999999999999999999999"}) {
    EXPECT_FALSE(kKeys.parse_ticket(bad)) << bad;
  }
}

TEST(EtcdKeys, ATicketThatCannotBeReadIsInEverybodysWay) {
  EXPECT_EQ(read_ticket("nonsense").weight, 0xFFFFFFFFu);
  EXPECT_EQ(read_ticket(R"({"weight":"0"})").weight, 0xFFFFFFFFu);
  EXPECT_EQ(read_ticket(R"({"weight":"-1","enqueued_ms":"9223372036854775807"})").weight,
            0xFFFFFFFFu);
}

TEST(EtcdMessages, ATransaction) {
  Txn txn;
  txn.if_created_at("k", 0)
      .if_all_created_by(Keyspan::below("q/"), 7)
      .then_put("k", "v", 3)
      .else_range(Keyspan::one("k"));
  const auto read = parse_json(txn.take());
  ASSERT_TRUE(read);
  const Json& range = (*read)["compare"].items()[1];
  EXPECT_EQ(base64_decoded(range["range_end"].text()), "q0");
  EXPECT_EQ(range["result"].text(), "LESS");
  EXPECT_EQ(range["create_revision"].integer(), 8);
  EXPECT_EQ((*read)["success"].items()[0]["request_put"]["lease"].integer(), 3);
}

// --- QueueView --------------------------------------------------------------------------------------

std::vector<std::string> granted(const QueueView& view, std::uint32_t capacity) {
  std::vector<std::string> keys;
  view.for_each_granted(capacity, [&](const std::string& each) { keys.push_back(each); });
  return keys;
}

TEST(EtcdQueueView, EventsBeforeTheFirstListAreKept) {
  QueueView view;
  view.put(ticket(kOther, 1, 10));
  view.put(ticket(kOther, 2, 14));
  view.erase(key(kOther, 1), 15);
  EXPECT_TRUE(granted(view, 9).empty());
  const std::vector<KeyValue> list{ticket(kOther, 1, 10), ticket(kOther, 3, 12)};
  EXPECT_FALSE(view.list(list, 12));
  EXPECT_EQ(granted(view, 9), (std::vector{key(kOther, 3), key(kOther, 2)}));
  EXPECT_EQ(view.revision(), 15u);
}

TEST(EtcdQueueView, AnOldListIsDropped) {
  QueueView view;
  view.list({}, 10);
  view.put(ticket(kOther, 1, 12));
  EXPECT_FALSE(view.list({}, 11));
  EXPECT_EQ(view.size(), 1u);
}

TEST(EtcdQueueView, AnOldEventIsDropped) {
  QueueView view;
  view.list({}, 10);
  view.put(ticket(kOther, 1, 9));
  EXPECT_EQ(view.size(), 0u);
}

TEST(EtcdQueueView, SeveralEndAtOneRevision) {
  QueueView view;
  const std::vector<KeyValue> list{ticket(kOther, 1, 3), ticket(kOther, 2, 4)};
  view.list(list, 5);
  view.erase(key(kOther, 1), 6);
  view.erase(key(kOther, 2), 6);
  EXPECT_EQ(view.size(), 0u);
}

TEST(EtcdQueueView, AListWithNewsSaysSo) {
  QueueView view;
  const std::vector<KeyValue> list{ticket(kOther, 1, 3)};
  EXPECT_FALSE(view.list(list, 5)) << "the first one is no reason to doubt the watch";
  EXPECT_FALSE(view.list(list, 6));
  EXPECT_TRUE(view.list({}, 7));
}

// Lists and events in any order, late and twice: the view is always the queue as it was at some revision, and in the end as it is.
TEST(EtcdQueueView, IsAlwaysAStateThatWas) {
  std::mt19937 dice(20260101);
  for (int game = 0; game < 300; ++game) {
    std::vector<std::vector<KeyValue>> history{{}};
    struct Event {
      KeyValue pair;
      bool is_put;
    };
    std::vector<Event> events{{}};
    for (Revision revision = 1; revision < 40; ++revision) {
      std::vector<KeyValue> next = history.back();
      if (next.empty() || dice() % 2 == 0) {
        next.push_back(ticket(kOther, revision, revision));
        events.push_back({next.back(), true});
      } else {
        const auto which = next.begin() + static_cast<std::ptrdiff_t>(dice() % next.size());
        KeyValue gone = *which;
        gone.modified = revision;
        events.push_back({gone, false});
        next.erase(which);
      }
      history.push_back(next);
    }
    QueueView view;
    Revision watched = 0;
    bool has_list = false;
    while (watched < 39 || !has_list) {
      if (watched < 39 && dice() % 3 != 0) {
        const Event& event = events[++watched];
        event.is_put ? view.put(event.pair) : view.erase(event.pair.key, event.pair.modified);
      } else {
        const Revision at = dice() % 40;
        view.list(history[at], at);
        has_list = true;
      }
      if (!has_list) continue;
      std::vector<std::string> expected;
      for (const KeyValue& each : history[view.revision()]) expected.push_back(each.key);
      ASSERT_EQ(granted(view, 1000), expected)
          << "game " << game << ", revision " << view.revision();
    }
    EXPECT_EQ(view.revision(), 39u);
  }
}

// --- TicketBook -------------------------------------------------------------------------------------

struct EtcdTicketBook : ::testing::Test {
  void ask(TicketNumber number, std::uint32_t weight = 1, std::uint32_t capacity = 1) {
    TicketRequest request;
    request.resource = "a";
    request.number = number;
    request.weight = weight;
    request.capacity = capacity;
    book.begin(request);
  }
  void placed(TicketNumber number, Revision created, bool granted) {
    Place place;
    place.is_there = true;
    place.created = created;
    place.granted = granted;
    place.lease = 5;
    book.place(number, place);
  }
  TicketBook book{kKeys, kMe};
};

TEST_F(EtcdTicketBook, AQueuedTicketFitsWhenTheOnesBeforeItAreGone) {
  ask(1);
  const std::vector<KeyValue> list{ticket(kOther, 1, 3), ticket(kMe, 1, 4)};
  book.list("a", list, 4);
  placed(1, 4, false);
  EXPECT_TRUE(book.fitting().empty());
  book.erase(key(kOther, 1), 5);
  EXPECT_EQ(book.fitting(), std::set<TicketNumber>{1});
  book.grant(1);
  EXPECT_TRUE(book.fitting().empty());
  EXPECT_EQ(book.views(), 0u) << "B1";
}

TEST_F(EtcdTicketBook, WhatTheWatchSaidDuringTheEnqueueCounts) {
  ask(1);
  book.put(ticket(kMe, 1, 4));
  book.erase(key(kOther, 1), 5);  // before the list that still has it arrives
  const std::vector<KeyValue> list{ticket(kOther, 1, 3), ticket(kMe, 1, 4)};
  book.list("a", list, 4);
  EXPECT_TRUE(book.fitting().empty()) << "B2: it is asked for, not queued";
  placed(1, 4, false);
  EXPECT_EQ(book.fitting(), std::set<TicketNumber>{1});
}

TEST_F(EtcdTicketBook, ATicketThatEndsUnaskedIsGone) {
  ask(1);
  book.list("a", std::vector{ticket(kMe, 1, 4)}, 4);
  placed(1, 4, true);
  book.erase(key(kMe, 1), 3);
  EXPECT_FALSE(book.has_gone()) << "an event from before it was created";
  book.erase(key(kMe, 1), 9);
  EXPECT_EQ(book.take_gone(), std::vector<TicketNumber>{1});
  EXPECT_EQ(book.size(), 0u);
}

TEST_F(EtcdTicketBook, OneThatEndedBeforeItsAnswerCameIsGone) {
  ask(1);
  book.put(ticket(kMe, 1, 4));
  book.erase(key(kMe, 1), 6);
  EXPECT_FALSE(book.has_gone());
  book.list("a", std::vector{ticket(kMe, 1, 4)}, 4);
  placed(1, 4, true);
  EXPECT_EQ(book.take_gone(), std::vector<TicketNumber>{1});
}

TEST_F(EtcdTicketBook, OneThatIsEndingMakesNoNews) {
  ask(1);
  book.list("a", std::vector{ticket(kMe, 1, 4)}, 4);
  placed(1, 4, true);
  book.end(1);
  book.erase(key(kMe, 1), 9);
  EXPECT_FALSE(book.has_gone());
  EXPECT_NE(book.find(1), nullptr);
  book.forget(1);
  EXPECT_EQ(book.size(), 0u);
}

TEST_F(EtcdTicketBook, AKeyOfOursThatNobodyKnowsIsAStray) {
  book.put(ticket(kMe, 7, 4));
  book.put(ticket(kOther, 7, 5));
  EXPECT_TRUE(book.has_strays());
  EXPECT_EQ(book.take_strays(), (std::map<std::string, Revision>{{key(kMe, 7), 4}}));
  book.put(ticket(kMe, 8, 6));
  book.erase(key(kMe, 8), 7);
  EXPECT_FALSE(book.has_strays()) << "it is gone by itself";
  book.put(ticket(kMe, 9, 8));
  ask(9);
  EXPECT_FALSE(book.has_strays()) << "it is asked for again";
}

TEST_F(EtcdTicketBook, ALatePutMayOvertakeTheAnswerOfItsWithdrawal) {
  ask(1);
  book.end(1);
  book.put(ticket(kMe, 1, 6));  // after the withdrawal, at 5, had found nothing
  EXPECT_FALSE(book.has_strays()) << "the answer may still say that it was removed later";
  book.forget(1, 5);
  EXPECT_EQ(book.take_strays(), (std::map<std::string, Revision>{{key(kMe, 1), 6}}));
  ask(2);
  book.put(ticket(kMe, 2, 7));
  book.forget(2, 8);
  EXPECT_FALSE(book.has_strays()) << "it was removed after that put";
}

TEST_F(EtcdTicketBook, AListOfEverythingFindsWhatWasMissed) {
  ask(1);
  book.list("a", std::vector{ticket(kMe, 1, 4)}, 4);
  placed(1, 4, true);
  ask(2);
  book.list("a", std::vector{ticket(kMe, 1, 4), ticket(kMe, 2, 5)}, 5);
  placed(2, 5, false);
  ask(3);
  const std::vector<KeyValue> all{ticket(kMe, 2, 5), ticket(kMe, 8, 6)};
  book.list_all(all, 9);
  EXPECT_EQ(book.take_gone(), std::vector<TicketNumber>{1});
  EXPECT_EQ(book.fitting(), std::set<TicketNumber>{2});
  EXPECT_EQ(book.take_strays().size(), 1u);
  EXPECT_NE(book.find(3), nullptr) << "one that is asked for may not be there yet";
}

TEST_F(EtcdTicketBook, NothingIsLeftBehind) {
  for (TicketNumber number = 1; number <= 100; ++number) {
    ask(number);
    book.list("a", std::vector{ticket(kMe, number, number)}, number);
    placed(number, number, number % 2 == 0);
    if (number % 3 == 0) ask(number);
    book.forget(number);
  }
  EXPECT_EQ(book.size(), 0u);
  EXPECT_EQ(book.views(), 0u);
  EXPECT_TRUE(book.fitting().empty());
}

}  // namespace
}  // namespace weft::durable::etcd
