// SPDX-License-Identifier: MIT
#include "weft/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace {

using weft::UniqueFd;

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }
int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFd, ClosesAtTheEndOfItsLife) {
  int raw = -1;
  {
    UniqueFd fd(open_null());
    raw = fd.get();
    ASSERT_TRUE(fd);
    ASSERT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, ReleaseLeavesTheDescriptorOpen) {
  UniqueFd fd(open_null());
  const int raw = fd.release();
  EXPECT_FALSE(fd);
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

TEST(UniqueFd, MovingHandsTheDescriptorOver) {
  UniqueFd from(open_null());
  const int raw = from.get();
  UniqueFd to(std::move(from));
  EXPECT_FALSE(from);
  EXPECT_EQ(to.get(), raw);
  EXPECT_TRUE(is_open(raw));
}

TEST(UniqueFd, MoveAssignmentClosesWhatItHad) {
  UniqueFd first(open_null());
  UniqueFd second(open_null());
  const int closed = first.get();
  const int kept = second.get();
  first = std::move(second);
  EXPECT_FALSE(is_open(closed));
  EXPECT_EQ(first.get(), kept);
  UniqueFd& self = first;
  first = std::move(self);
  EXPECT_TRUE(is_open(kept));
}

TEST(UniqueFd, ResetClosesAndTakesOver) {
  UniqueFd fd(open_null());
  const int closed = fd.get();
  const int taken = open_null();
  fd.reset(taken);
  EXPECT_FALSE(is_open(closed));
  EXPECT_EQ(fd.get(), taken);
  fd.reset();
  EXPECT_FALSE(is_open(taken));
  EXPECT_EQ(fd.get(), -1);
}

TEST(UniqueFd, NegativeNumbersMeanNone) {
  EXPECT_FALSE(UniqueFd());
  EXPECT_EQ(UniqueFd(-22).get(), -1);
}

TEST(UniqueFd, ClosingKeepsErrno) {
  UniqueFd fd(open_null());
  errno = ENOENT;
  fd.reset();
  EXPECT_EQ(errno, ENOENT);
}

TEST(UniqueFdDeathTest, ClosingBehindItsBackIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        UniqueFd fd(open_null());
        ::close(fd.get());
      },
      "closed once, by its owner");
}

}  // namespace
