// expect: await_must_resume can only return std::false_type
// SPDX-License-Identifier: MIT
#include <coroutine>

#include "weft/weft.h"

struct Read {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
  std::true_type await_cancel(std::coroutine_handle<>) noexcept;  // always at once ...
  bool await_must_resume() const noexcept;                        // ... so what is this for?
};
weft::Task<int> user() { co_return co_await Read(); }
