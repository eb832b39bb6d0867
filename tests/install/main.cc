// SPDX-License-Identifier: MIT
#include <weft/testing/virtual_loop.h>
#include <weft/weft.h>

weft::Task<int> answer() { co_return 42; }

int main() {
  weft::testing::VirtualLoop loop;
  return weft::run(loop, answer()) == 42 ? 0 : 1;
}
