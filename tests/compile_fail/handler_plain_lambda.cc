// SPDX-License-Identifier: MIT
// expect: weft: a handler is a coroutine: called with what it is to handle, it returns a Task
#include "weft/net/server.h"

void f(weft::net::Server& server) {
  (void)server.listen_tcp(weft::net::Address::loopback_v4(0), [](weft::net::TcpStream) {});
}
