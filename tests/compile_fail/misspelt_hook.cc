// expect: a hook of this awaiter is misspelt
// SPDX-License-Identifier: MIT
#include <coroutine>

#include "weft/weft.h"

struct Read {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
  std::true_type await_canceled(std::coroutine_handle<>) noexcept;
};
weft::Task<int> user() { co_return co_await Read(); }
