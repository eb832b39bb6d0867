// expect: a Task is awaited once and is used up by it: co_await std::move(task)
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

weft::Task<int> child();
weft::Task<int> parent() {
  weft::Task<int> task = child();
  co_return co_await task;
}
