// expect: a Generator has no result: throw the error, or yield a std::expected
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

weft::Task<weft::Result<int>> read();
weft::Generator<int> numbers() {
  for (;;) co_yield co_await weft::ok(read());
}
