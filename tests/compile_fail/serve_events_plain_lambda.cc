// SPDX-License-Identifier: MIT
// expect: serve_events() takes a coroutine: Task<void>(EventStream&)
#include "weft/http/event_stream.h"

weft::Task<void> f(const weft::http::Request& request, weft::http::Response& response,
                   weft::http::Connection& connection) {
  co_await weft::http::serve_events(request, response, connection, [](weft::http::EventStream&) {});
}
