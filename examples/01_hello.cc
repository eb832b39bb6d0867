// SPDX-License-Identifier: MIT
// The smallest program: two tasks, one of which awaits the other, on a loop that runs here.
//
// Run: build/release/examples/01_hello      See: one line.
#include <cstdio>

#include "weft/testing/thread_loop.h"
#include "weft/weft.h"

// [program]
weft::Task<const char*> whom() { co_return "world"; }

weft::Task<> greet() {
  const char* name = co_await whom();
  std::printf("hello, %s\n", name);
}

int main() {
  weft::testing::ThreadLoop loop;
  weft::run(loop, greet());
}
// [/program]
