// SPDX-License-Identifier: MIT
#pragma once
// The I/O drivers that this machine has, for tests that run on each:
//
//     INSTANTIATE_TEST_SUITE_P(Drivers, X, ::testing::ValuesIn(weft::test::drivers_here()),
//                              weft::test::driver_name);
#include <gtest/gtest.h>

#include <string>
#include <system_error>
#include <vector>

#include "weft/io/driver.h"

namespace weft::test {

inline std::vector<Driver> drivers_here() {
  std::vector<Driver> all = {Driver::epoll, Driver::poll};
  try {
    if (choose_driver(Driver::io_uring) == Driver::io_uring) all.push_back(Driver::io_uring);
  } catch (const std::system_error&) {
  }
  return all;
}

inline std::string driver_name(const ::testing::TestParamInfo<Driver>& of) {
  return std::string(to_string(of.param));
}

}  // namespace weft::test
