// expect: await_cancel returns bool, std::true_type or std::false_type
// SPDX-License-Identifier: MIT
#include <coroutine>

#include "weft/weft.h"

struct Read {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
  void await_cancel(std::coroutine_handle<>) noexcept;
  bool await_must_resume() const noexcept;
};
weft::Task<int> user() { co_return co_await Read(); }
