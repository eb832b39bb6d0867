// SPDX-License-Identifier: MIT
#include "table.h"

#include <gtest/gtest.h>

namespace {

using namespace weft::tool;

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"NAME", "N", "OWNER"});
  EXPECT_EQ(table.rows(), 0u);
  EXPECT_EQ(table.text(), "NAME  N  OWNER\n");
  table.add({"a", "100", "x"});
  table.add({"orders/42", "1", ""});
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.text(),
            "NAME       N    OWNER\n"
            "a          100  x\n"
            "orders/42  1    \n");
}

TEST(Table, ATerminalIsNotSentWhatOthersWrote) {
  Table table({"NAME"});
  table.add({"a\n\x1b[2J\x7f\\"});
  EXPECT_EQ(table.text(), "NAME\na\\x0a\\x1b[2J\\x7f\\x5c\n");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\xc2\\x9b2J")
      << "CSI, in one character";
  EXPECT_EQ(printable("für"), "für") << "UTF-8 as it is";
}

}  // namespace
