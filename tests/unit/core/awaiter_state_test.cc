// SPDX-License-Identifier: MIT
#include "weft/core/awaiter_state.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weft::test {
namespace {

using detail::AwaiterState;
using detail::AwaiterStateMachine;

struct Hook {
  std::string name;
  std::function<void(AwaiterStateMachine&)> call;
};

// Every event of seed 002's diagram.
const std::vector<Hook>& events() {
  static const std::vector<Hook> all = {
      {"R", [](auto& m) { m.ready_answered(true); }},
      {"!R", [](auto& m) { m.ready_answered(false); }},
      {"EC", [](auto& m) { m.early_cancel_answered(true); }},
      {"!EC", [](auto& m) { m.early_cancel_answered(false); }},
      {"suspend", [](auto& m) { m.suspending(); }},
      {"resume", [](auto& m) { m.resumed(); }},
      {"C", [](auto& m) { m.cancelling(), m.cancel_answered(true); }},
      {"!C", [](auto& m) { m.cancelling(), m.cancel_answered(false); }},
      {"MR", [](auto& m) { m.must_resume_answered(true); }},
      {"!MR", [](auto& m) { m.must_resume_answered(false); }},
      {"await_resume", [](auto& m) { m.resuming(); }},
  };
  return all;
}

using S = AwaiterState;
// The shortest way to each state, and where each event leads from there.
struct Row {
  S state;
  std::vector<std::string> path;
  std::map<std::string, S> next;
};
const std::vector<Row>& diagram() {
  static const std::vector<Row> rows = {
      {S::initial,
       {},
       {{"R", S::ready_immediately},
        {"!R", S::not_ready},
        {"EC", S::cancelled},
        {"!EC", S::initial_cancel_pending}}},
      {S::not_ready,
       {"!R"},
       {{"R", S::ready_immediately},
        {"!R", S::not_ready},
        {"EC", S::cancelled},
        {"!EC", S::cancel_pending},
        {"suspend", S::running}}},
      {S::ready_immediately,
       {"R"},
       {{"R", S::ready_immediately},
        {"EC", S::cancelled},
        {"!EC", S::ready_after_cancel},
        {"await_resume", S::done}}},
      {S::initial_cancel_pending,
       {"!EC"},
       {{"R", S::ready_after_cancel}, {"!R", S::cancel_pending}}},
      {S::cancel_pending,
       {"!EC", "!R"},
       {{"R", S::ready_after_cancel}, {"!R", S::cancel_pending}, {"suspend", S::cancelling}}},
      {S::running,
       {"!R", "suspend"},
       {{"resume", S::ready}, {"C", S::cancelled}, {"!C", S::cancelling}}},
      {S::cancelling, {"!R", "suspend", "!C"}, {{"resume", S::ready_after_cancel}}},
      {S::ready_after_cancel,
       {"!R", "suspend", "!C", "resume"},
       {{"MR", S::ready}, {"!MR", S::cancelled}}},
      {S::ready, {"!R", "suspend", "resume"}, {{"MR", S::ready}, {"await_resume", S::done}}},
      {S::done, {"R", "await_resume"}, {}},
      {S::cancelled, {"EC"}, {{"!MR", S::cancelled}}},
  };
  return rows;
}

void play(AwaiterStateMachine& machine, const std::string& name) {
  for (const Hook& hook : events()) {
    if (hook.name == name) hook.call(machine);
  }
}

// Leads the machine to an end, so that it may be destroyed.
void finish(AwaiterStateMachine& machine) { machine.threw(); }

TEST(AwaiterState, FollowsEveryArrowOfTheDiagram) {
  for (const Row& row : diagram()) {
    for (const auto& [event, target] : row.next) {
      AwaiterStateMachine machine(typeid(int));
      for (const std::string& step : row.path) play(machine, step);
      ASSERT_EQ(machine.state(), row.state);
      play(machine, event);
      EXPECT_EQ(machine.state(), target) << name_of(row.state) << " --" << event;
      finish(machine);
    }
  }
}

TEST(AwaiterStateDeathTest, RefusesEveryOtherEventAndNamesIt) {
  GTEST_FLAG_SET(death_test_style, "fast");
  for (const Row& row : diagram()) {
    for (const Hook& hook : events()) {
      if (row.next.contains(hook.name)) continue;
      EXPECT_DEATH(
          {
            AwaiterStateMachine machine(typeid(int));
            for (const std::string& step : row.path) play(machine, step);
            hook.call(machine);
          },
          std::string("int in state ") + name_of(row.state))
          << name_of(row.state) << " --" << hook.name;
    }
  }
}

TEST(AwaiterStateDeathTest, DestructionIsAllowedInInitialDoneAndCancelledOnly) {
  GTEST_FLAG_SET(death_test_style, "fast");
  for (const Row& row : diagram()) {
    bool allowed = row.state == S::initial || row.state == S::done || row.state == S::cancelled;
    auto build = [&] {
      AwaiterStateMachine machine(typeid(int));
      for (const std::string& step : row.path) play(machine, step);
    };
    if (allowed) {
      build();
    } else {
      EXPECT_DEATH(build(), "was destroyed") << name_of(row.state);
    }
  }
}

TEST(AwaiterStateDeathTest, CancelThatResumedItsHandleMustAnswerFalse) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH(
      {
        AwaiterStateMachine machine(typeid(int));
        machine.ready_answered(false);
        machine.suspending();
        machine.cancelling();
        machine.resumed();
        machine.cancel_answered(true);
      },
      "although it had resumed its handle");
}

}  // namespace
}  // namespace weft::test
