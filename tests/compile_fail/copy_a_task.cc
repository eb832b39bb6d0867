// expect: deleted
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

weft::Task<int> child();
weft::Task<int> twice() {
  weft::Task<int> one = child();
  weft::Task<int> two = one;
  co_return co_await std::move(two);
}
