// SPDX-License-Identifier: MIT
#include "progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace {

using namespace weft::tool;
using namespace std::chrono_literals;

ProgressState half() {
  return {.name = "cloth.bin", .bytes = 5 << 20, .total = 10 << 20, .since_begin = 2s};
}

TEST(Progress, HalfOfIt) {
  EXPECT_EQ(progress_line(half(), 80),
            "cloth.bin   50% [============>           ] 5.0 of 10.0 MiB, 2.5 MiB/s, 0:02 left");
}

TEST(Progress, NoLineIsLongerThanTheTerminal) {
  for (std::size_t columns = 0; columns < 200; ++columns) {
    for (bool is_over : {false, true}) {
      for (bool is_known : {false, true}) {
        ProgressState state = half();
        state.is_over = is_over;
        if (!is_known) state.total.reset();
        EXPECT_LE(progress_line(state, columns).size(), columns);
      }
    }
  }
}

TEST(Progress, WithoutALengthItSaysHowMuchThereIs) {
  ProgressState state = half();
  state.total.reset();
  EXPECT_EQ(progress_line(state, 80), "cloth.bin  5.0 MiB, 2.5 MiB/s");
}

TEST(Progress, AtItsEndItSaysHowLongItTook) {
  ProgressState state = half();
  state.bytes = 10 << 20;
  state.since_begin = 64s;
  state.is_over = true;
  std::string line = progress_line(state, 80);
  EXPECT_EQ(line.substr(0, 17), "cloth.bin  100% [");
  EXPECT_TRUE(line.ends_with("=] 10.0 MiB, 160.0 KiB/s, 1:04")) << line;
}

TEST(Progress, NothingHasComeAndNothingIsToCome) {
  ProgressState state{.name = "a", .bytes = 0, .total = 100};
  EXPECT_EQ(progress_line(state, 40), "a    0% [>           ] 0 of 100 B, 0 B/s");
  state.total = 0;
  state.is_over = true;
  EXPECT_EQ(progress_line(state, 40), "a  0 B, 0 B/s, 0:00");
}

TEST(Progress, Units) {
  EXPECT_EQ(in_units(0), "0 B");
  EXPECT_EQ(in_units(1023), "1023 B");
  EXPECT_EQ(in_units(1024), "1.0 KiB");
  EXPECT_EQ(in_units(1536 * 1024), "1.5 MiB");
  EXPECT_EQ(in_units(1ull << 40), "1.0 TiB");
}

}  // namespace
