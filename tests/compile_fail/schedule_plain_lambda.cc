// SPDX-License-Identifier: MIT
// expect: weft: schedule() takes a Task, or a function that returns one
#include "weft/weft.h"

void f(weft::IOContext& ctx) {
  ctx.schedule([] {});
}
