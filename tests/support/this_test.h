// SPDX-License-Identifier: MIT
#pragma once
// The test that runs, in another process: this program again, told by its environment what to do there.
//
//     if (const char* role = role_of_this_process()) return play(role);
//     Process other = or_throw(Process::spawn(this_test_as("holder")));
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weft/run/process.h"

namespace weft::test {

inline constexpr const char* kRole = "WEFT_TEST_ROLE";

// Returns: null in the process that ctest has started. Another ends with that one, however it ends.
inline const char* role_of_this_process() {
  const char* role = std::getenv(kRole);
  if (role) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return role;
}

// The same test of the same program, whatever gtest was told here.
inline ProcessOptions this_test_as(const std::string& role) {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = std::string(test.test_suite_name()) + "." + test.name();
  ProcessOptions options("/proc/self/exe", {"--gtest_filter=" + filter, "--gtest_brief=1"});
  options.environment.emplace();
  for (char** each = environ; *each; ++each) {
    std::string_view variable = *each;
    if (!variable.starts_with("GTEST_")) options.environment->emplace_back(variable);
  }
  options.environment->push_back(std::string(kRole) + "=" + role);
  return options;
}

}  // namespace weft::test
