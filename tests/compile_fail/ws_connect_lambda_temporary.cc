// expect: name the lambda first
// only: gcc
// SPDX-License-Identifier: MIT
#include <memory>

#include "weft/ws/client.h"

weft::Task<void> user(std::shared_ptr<int> held) {
  auto end = co_await weft::ws::connect(
      "ws://example.org/", [held](weft::ws::Connection&) -> weft::Task<void> { co_return; });
}
