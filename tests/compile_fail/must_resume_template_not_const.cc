// expect: await_must_resume takes no arguments and must be const
// SPDX-License-Identifier: MIT
#include <coroutine>

#include "weft/weft.h"

struct Read {
  bool await_ready();
  void await_suspend(std::coroutine_handle<>);
  int await_resume();
  template <class T = int>
  bool await_must_resume() noexcept;  // has no address until it is asked for
};
weft::Task<int> user() { co_return co_await Read(); }
