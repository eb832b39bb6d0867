// expect: name the lambda first
// only: gcc
// SPDX-License-Identifier: MIT
#include <memory>

#include "weft/net/memory_stream.h"
#include "weft/ws/client.h"

weft::Task<void> user(weft::net::MemoryStream stream, std::shared_ptr<int> held) {
  auto end =
      co_await weft::ws::connect(std::move(stream), "example.org", "/",
                                 [held](weft::ws::Connection&) -> weft::Task<void> { co_return; });
}
