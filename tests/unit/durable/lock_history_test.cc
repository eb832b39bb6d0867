// SPDX-License-Identifier: MIT
// The checker of histories finds what it is for: each of these is a right history with one thing wrong.
#include "support/lock_history.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace {

using namespace weft::test;

// a has it from 10 to 20 with token 1, b from 30 to 40 with token 2; each reads, and counts one further.
LockEvents right() {
  using enum LockEvent::What;
  return {
      {hold, "a", 1, 5, 10, 0},   {read, "a", 1, 11, 11, 0}, {sure, "a", 1, 12, 12, 0},
      {write, "a", 1, 15, 15, 1}, {done, "a", 1, 16, 16, 1}, {left, "a", 1, 10, 20, 0},
      {hold, "b", 2, 6, 30, 0},   {read, "b", 2, 31, 31, 1}, {write, "b", 2, 35, 35, 2},
      {done, "b", 2, 36, 36, 2},  {left, "b", 2, 30, 40, 0}, {refused, "a", 1, 50, 50, 2},
  };
}
enum Line {
  kHoldA,
  kReadA,
  kSureA,
  kWriteA,
  kDoneA,
  kLeftA,
  kHoldB,
  kReadB,
  kWriteB,
  kDoneB,
  kLeftB,
  kRefusedA
};

void expect_found(const LockEvents& broken, const std::string& what) {
  HistoryCheck check = check_history(broken);
  ASSERT_FALSE(check.violations.empty()) << what;
  EXPECT_NE(check.violations.front().find(what), std::string::npos) << check.violations.front();
}

TEST(LockHistory, WhatIsRightPasses) {
  HistoryCheck check = check_history(right());
  EXPECT_EQ(check.violations, Violations());
  EXPECT_EQ(check.holds, 2u);
  EXPECT_EQ(check.updates, 2u);
  EXPECT_EQ(check.refusals, 1u);
}

TEST(LockHistory, IsReadAsItWasWritten) {
  TemporaryDirectory directory;
  HistoryLog log(directory.file("history"));
  for (const LockEvent& event : right()) log.add(event);
  LockEvents back = read_history(directory.file("history"));
  ASSERT_EQ(back.size(), right().size());
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i].line(), right()[i].line());
  EXPECT_THROW(static_cast<void>(LockEvent::parse("hold a 1 2")), std::runtime_error);
  EXPECT_THROW(static_cast<void>(LockEvent::parse("has a 1 2 3 4")), std::runtime_error);
}

TEST(LockHistory, ATokenThatIsGivenTwice) {
  LockEvents broken = right();
  for (LockEvent& event : broken) {
    if (event.who == "b") event.token = 1;
  }
  expect_found(broken, "has the token of a");
}

TEST(LockHistory, TokensThatDoNotRise) {
  LockEvents broken = right();
  broken[kHoldA].begin = 45;  // asks after b had it, and has the smaller token
  broken[kHoldA].end = 46;
  expect_found(broken, "had it before somebody with a smaller token asked");
}

TEST(LockHistory, TwoWhoAreBothSure) {
  LockEvents broken = right();
  broken[kSureA].begin = broken[kSureA].end = 33;
  expect_found(broken, "was in while a was: its lease had time left");
  EXPECT_EQ(check_history(broken, false).violations, Violations())
      << "clocks that differ say nothing";
}

TEST(LockHistory, OneWhoIsToldThatItHeldAndDidNot) {
  LockEvents broken = right();
  broken[kLeftA].end = 33;
  expect_found(broken, "was in while a was: it was told that it held to its end");
  broken[kLeftA].what = LockEvent::lost;
  EXPECT_EQ(check_history(broken).violations, Violations()) << "it was told that it had lost";
}

TEST(LockHistory, AGateThatLetsAnOlderTokenPass) {
  LockEvents broken = right();
  broken[kRefusedA].what = LockEvent::write;
  broken[kRefusedA].value = 3;
  expect_found(broken, "passed the gate after a greater token");
}

TEST(LockHistory, AGateThatRefusesWithoutReason) {
  LockEvents broken = right();
  broken[kRefusedA].token = 2;
  expect_found(broken, "was refused, and nobody greater was there");
}

TEST(LockHistory, TwoWhoPassTheGateWithOneToken) {
  LockEvents broken = right();
  broken[kReadB].token = broken[kWriteB].token = 1;
  expect_found(broken, "passed the gate with the token of a");
}

TEST(LockHistory, WhoPassesTheGateHadTheLock) {
  LockEvents broken = right();
  broken.erase(broken.begin() + kHoldB, broken.begin() + kHoldB + 1);
  std::erase_if(broken, [](const LockEvent& event) { return event.what == LockEvent::left; });
  expect_found(broken, "passed the gate without the lock");
}

TEST(LockHistory, AnUpdateThatIsLost) {
  LockEvents broken = right();
  broken[kReadB].value = 0;
  expect_found(broken, "read what is not there");
  broken[kReadB].value = 1;
  broken[kWriteB].value = broken[kDoneB].value = 1;
  expect_found(broken, "wrote over another's update");
}

TEST(LockHistory, AnUpdateThatComesTwice) {
  LockEvents broken = right();
  broken.insert(broken.begin() + kWriteA, broken[kWriteA]);
  expect_found(broken, "wrote over another's update");
}

TEST(LockHistory, AnUpdateThatWasConfirmedAndIsNotThere) {
  LockEvents broken = right();
  broken.erase(broken.begin() + kWriteB);
  expect_found(broken, "is told of an update that is not there");
}

}  // namespace
