// expect: so it needs await_must_resume to say whether there is a result
// SPDX-License-Identifier: MIT
#include <coroutine>

#include "weft/weft.h"

struct Read {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
  bool await_cancel(std::coroutine_handle<>) noexcept;  // may say: later
};
weft::Task<int> user() { co_return co_await Read(); }
