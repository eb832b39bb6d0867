// SPDX-License-Identifier: MIT
// expect: weft: a handler is a coroutine: called with what it is to handle, it returns a Task
#include "weft/net/serve.h"

void greet(weft::net::TcpStream);

weft::Task<void> f(weft::net::TcpListener& listener) { co_await serve(listener, {}, greet); }
