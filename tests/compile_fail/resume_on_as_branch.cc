// expect: resume_on() moves a whole task
// expect: use on(loop, task)
// SPDX-License-Identifier: MIT
// A branch of a combinator is no task, and cannot go to another loop by itself.
#include "weft/weft.h"

weft::Task<void> user(weft::Executor& loop) {
  co_await weft::any_of(weft::resume_on(loop), weft::suspend_forever());
}
