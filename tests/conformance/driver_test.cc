// SPDX-License-Identifier: MIT
// Which driver a loop gets: as asked for, as the environment says, as the kernel allows.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdlib>

#include "driver_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

// From now on io_uring_setup() says EPERM, as it does in many a container.
void forbid_io_uring() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(rules), rules};
  checked(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
  checked(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

Task<std::string> round_trip() {
  Pair pair = socket_pair();
  put(pair.theirs, "works");
  co_return co_await read_at_least(pair.ours, 5);
}

// What the kernel has is asked once per process: each of these is a process of its own.
class DriverChoiceDeathTest : public ::testing::Test {
 protected:
  DriverChoiceDeathTest() {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    ::unsetenv("WEFT_DRIVER");
  }
};

[[noreturn]] void choose_where_it_is_forbidden() {
  forbid_io_uring();
  EventLoop loop;
  bool well = loop.driver() == Driver::epoll && run(loop, round_trip()) == "works";
  try {
    EventLoop insists({.driver = Driver::io_uring});
    well = false;
  } catch (const std::system_error& error) {
    well = well && error.code() == std::errc::operation_not_permitted;
  }
  std::exit(well ? 0 : 1);
}

TEST_F(DriverChoiceDeathTest, EpollWhereIoUringIsForbidden) {
  EXPECT_EXIT(choose_where_it_is_forbidden(), ::testing::ExitedWithCode(0), "I/O by epoll");
}

[[noreturn]] void choose_by_environment(const char* name, Driver expected) {
  ::setenv("WEFT_DRIVER", name, 1);
  EventLoop loop({.driver = Driver::epoll});
  std::exit(loop.driver() == expected && run(loop, round_trip()) == "works" ? 0 : 1);
}

TEST_F(DriverChoiceDeathTest, TheEnvironmentHasTheLastWord) {
  EXPECT_EXIT(choose_by_environment("poll", Driver::poll), ::testing::ExitedWithCode(0), "poll");
}

TEST_F(DriverChoiceDeathTest, AWrongNameIsRefused) {
  ::setenv("WEFT_DRIVER", "kqueue", 1);
  EXPECT_THROW(static_cast<void>(choose_driver(Driver::automatic)), UsageError);
  ::unsetenv("WEFT_DRIVER");
}

TEST_F(DriverChoiceDeathTest, AutomaticIsIoUringWhereThereIsOne) {
  bool has_it = drivers().back() == Driver::io_uring;
  EXPECT_EQ(choose_driver(Driver::automatic), has_it ? Driver::io_uring : Driver::epoll);
}

}  // namespace
