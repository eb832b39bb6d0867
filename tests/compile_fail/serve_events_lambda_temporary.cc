// expect: name the lambda first
// only: gcc
// SPDX-License-Identifier: MIT
#include <memory>

#include "weft/http/event_stream.h"

weft::Task<void> f(const weft::http::Request& request, weft::http::Response& response,
                   weft::http::Connection& connection, std::shared_ptr<int> held) {
  co_await weft::http::serve_events(
      request, response, connection,
      [held](weft::http::EventStream&) -> weft::Task<void> { co_return; });
}
