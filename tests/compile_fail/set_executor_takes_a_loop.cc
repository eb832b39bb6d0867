// expect: await_set_executor must be callable with a weft::Executor*
// SPDX-License-Identifier: MIT
#include <coroutine>

#include "weft/weft.h"

struct Read {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
  void await_set_executor(weft::Executor&);
};
weft::Task<int> user() { co_return co_await Read(); }
