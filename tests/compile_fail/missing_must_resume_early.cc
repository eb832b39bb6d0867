// expect: so it needs await_must_resume to say whether there is a result
// SPDX-License-Identifier: MIT
#include <coroutine>

#include "weft/weft.h"

struct Read {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
  std::false_type await_early_cancel() noexcept;
};
weft::Task<int> user() { co_return co_await Read(); }
