// expect: await_must_resume takes no arguments and must be const
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

struct Read {  // takes a Continuation, as weft's own awaiters do
  using native_awaiter = void;
  bool await_ready();
  void await_suspend(weft::detail::Continuation);
  int await_resume();
  bool await_cancel(weft::detail::Continuation) noexcept;
  bool await_must_resume() noexcept;
};
weft::Task<int> user() { co_return co_await Read(); }
