// SPDX-License-Identifier: MIT
// expect: ws::connect() takes a coroutine: Task<void>(ws::Connection&)
#include "weft/ws/client.h"

void f() {
  auto talking = weft::ws::connect("ws://example.org/", [](weft::ws::Connection&) {});
}
