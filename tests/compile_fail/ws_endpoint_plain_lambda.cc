// SPDX-License-Identifier: MIT
// expect: an Endpoint takes a ws::Handler, or a coroutine
#include "weft/ws/endpoint.h"

void f() {
  weft::ws::Endpoint endpoint([](weft::ws::Connection&, const weft::http::Request&) {});
}
