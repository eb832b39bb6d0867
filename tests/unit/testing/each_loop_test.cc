// SPDX-License-Identifier: MIT
// LOOP_TEST: what runs under the name of a loop runs on that loop (tests/support/loop_fixture.h).
#include <string>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct EachLoop : EachLoopTest {};

LOOP_TEST(EachLoop, IsTheOneThatTheTestIsNamedFor) {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  auto ends_with = [&](const char* loop_name) { return name.ends_with(loop_name); };
  Executor* home = nullptr;
  auto body = [&]() -> Task<void> {
    home = Executor::current_or_null();
    if (loop.context()) {
      EXPECT_EQ(IOContext::current_or_null(), loop.context());
    }
    co_return;
  };
  run_on(loop, body());
  EXPECT_EQ(home, &loop.loop());
  EXPECT_EQ(dynamic_cast<weft::testing::VirtualLoop*>(home) != nullptr, ends_with("/Virtual"));
  EXPECT_EQ(dynamic_cast<weft::testing::ThreadLoop*>(home) != nullptr, ends_with("/Thread"));
  EXPECT_EQ(dynamic_cast<EventLoop*>(home) != nullptr, ends_with("/Runtime"));
}

}  // namespace
