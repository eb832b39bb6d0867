// expect: resume_on() moves a whole task
// SPDX-License-Identifier: MIT
// The same goes for whatever wraps one awaitable.
#include "weft/weft.h"

weft::Task<void> user(weft::Executor& loop) {
  co_await weft::annotate("moving", weft::resume_on(loop));
}
