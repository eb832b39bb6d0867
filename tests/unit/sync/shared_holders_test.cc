// SPDX-License-Identifier: MIT
#include "weft/sync/shared_holders.h"

#include <gtest/gtest.h>

#include <source_location>
#include <vector>

namespace {

using weft::detail::LockHolder;
using weft::detail::SharedHolders;

TEST(SharedHolders, SoManyAreNotedAndAPlaceThatIsLeftIsTakenAgain) {
  SharedHolders holders;
  int tasks[SharedHolders::kNotedMax + 1];
  auto who = [&](int index) {
    return LockHolder::Who{&tasks[index], std::source_location::current()};
  };
  for (int i = 0; i < SharedHolders::kNotedMax; ++i) EXPECT_EQ(holders.note(who(i)), i);
  EXPECT_EQ(holders.note(who(SharedHolders::kNotedMax)), SharedHolders::kNowhere);
  holders.forget(SharedHolders::kNowhere);
  holders.forget(3);
  EXPECT_EQ(holders.all().size(), SharedHolders::kNotedMax - 1u);
  EXPECT_EQ(holders.note(who(SharedHolders::kNotedMax)), 3);
  EXPECT_EQ(holders.all()[3].task, &tasks[SharedHolders::kNotedMax]);
}

TEST(SharedHolders, NobodyIsNotNoted) {
  SharedHolders holders;
  EXPECT_EQ(holders.note({nullptr, std::source_location::current()}), SharedHolders::kNowhere);
  EXPECT_TRUE(holders.all().empty());
}

}  // namespace
