// SPDX-License-Identifier: MIT
#include "support/loop_fixture.h"

namespace weft::test {

LoopKind EachLoopTest::kind_ = LoopKind::virtual_time;

EachLoopTest::~EachLoopTest() { EXPECT_EQ(loop.strand_count(), 0u) << "a task outlived its test"; }

bool EachLoopTest::add(const char* suite, const char* name, std::span<const LoopKind> loops,
                       const char* file, int line, Make make) {
  for (LoopKind kind : loops) {
    const std::string full_name = std::string(name) + "/" + to_string(kind);
    auto factory = [kind, make] {
      kind_ = kind;
      return make();
    };
    ::testing::RegisterTest(suite, full_name.c_str(), nullptr, nullptr, file, line, factory);
  }
  return true;
}

}  // namespace weft::test
