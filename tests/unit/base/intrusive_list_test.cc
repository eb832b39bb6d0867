// SPDX-License-Identifier: MIT
#include "weft/base/intrusive_list.h"

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

namespace {

using weft::IntrusiveList;
using weft::ListNode;

struct Other;
struct Item : ListNode<>, ListNode<Other> {
  explicit Item(int n) : number(n) {}
  int number;
  ListNode<>& node() { return *this; }
};
using List = IntrusiveList<Item>;

std::vector<int> numbers(auto& list) {
  std::vector<int> seen;
  for (Item& item : list) seen.push_back(item.number);
  return seen;
}

void clear(auto& list) {
  while (list.pop_front() != nullptr) {
  }
}

TEST(IntrusiveList, KeepsTheOrderOfPushes) {
  List list;
  Item a{1}, b{2}, c{3};
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  EXPECT_EQ(numbers(list), (std::vector{1, 2, 3}));
  EXPECT_EQ(list.front().number, 1);
  EXPECT_EQ(list.back().number, 3);
  EXPECT_EQ(std::prev(list.end())->number, 3);
  clear(list);
}

TEST(IntrusiveList, InsertsBeforeAMember) {
  List list;
  Item a{1}, b{2}, c{3};
  list.push_back(c);
  list.insert_before(c, a);
  list.insert_before(c, b);
  EXPECT_EQ(numbers(list), (std::vector{1, 2, 3}));
  clear(list);
}

TEST(IntrusiveList, UnlinkNeedsNoListAndLeavesTheNodeUnlinked) {
  List list;
  Item a{1}, b{2}, c{3};
  for (Item* item : {&a, &b, &c}) list.push_back(*item);
  b.node().unlink();
  EXPECT_FALSE(b.node().linked());
  EXPECT_EQ(numbers(list), (std::vector{1, 3}));
  List::erase(a);
  List::erase(c);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, PopFrontEmptiesInOrderThenSaysNull) {
  List list;
  Item a{1}, b{2};
  list.push_back(a);
  list.push_back(b);
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_EQ(list.pop_front(), &b);
  EXPECT_EQ(list.pop_front(), nullptr);
  EXPECT_FALSE(a.node().linked());
}

TEST(IntrusiveList, SpliceMovesAllInOrderAndEmptiesTheOther) {
  List list, other;
  Item a{1}, b{2}, c{3}, d{4};
  list.push_back(a);
  list.push_back(b);
  other.push_back(c);
  other.push_back(d);
  list.splice_back(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(numbers(list), (std::vector{1, 2, 3, 4}));
  list.splice_back(other);  // an empty one changes nothing
  EXPECT_EQ(numbers(list), (std::vector{1, 2, 3, 4}));
  other.splice_back(list);  // into an empty one
  EXPECT_EQ(numbers(other), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(other.back().number, 4);
  clear(other);
}

TEST(IntrusiveList, OneObjectIsInOneListPerTag) {
  List list;
  IntrusiveList<Item, Other> other;
  Item a{1}, b{2};
  list.push_back(a);
  list.push_back(b);
  other.push_back(b);
  other.push_back(a);
  EXPECT_EQ(numbers(list), (std::vector{1, 2}));
  EXPECT_EQ(numbers(other), (std::vector{2, 1}));
  List::erase(a);
  EXPECT_EQ(numbers(other), (std::vector{2, 1}));
  clear(list);
  clear(other);
}

TEST(IntrusiveList, TheCurrentMemberMayLeaveOnceTheIteratorMovedOn) {
  List list;
  Item a{1}, b{2}, c{3};
  for (Item* item : {&a, &b, &c}) list.push_back(*item);
  for (auto at = list.begin(); at != list.end();) {
    Item& item = *at++;
    if (item.number != 2) List::erase(item);
  }
  EXPECT_EQ(numbers(list), (std::vector{2}));
  clear(list);
}

#ifndef NDEBUG
TEST(IntrusiveListDeathTest, MisuseIsNamedInDebugBuilds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  List list;
  Item a{1};
  EXPECT_DEATH(a.node().unlink(), "a node that leaves a list is in one");
  EXPECT_DEATH((void)list.front(), "only if there is one");
  list.push_back(a);
  EXPECT_DEATH(list.push_back(a), "in one list at a time");
  EXPECT_DEATH((void)Item(a).node().linked(), "stays where it is");
  EXPECT_DEATH(
      {
        List dying;
        Item b{2};
        dying.push_back(b);
      },
      "a list is empty when it ends");
  clear(list);
}
#endif

}  // namespace
