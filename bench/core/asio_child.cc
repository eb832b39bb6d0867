// SPDX-License-Identifier: MIT
#include "core/asio_child.h"

namespace weft::bench {

boost::asio::awaitable<int> asio_child(int value) { co_return value + 1; }

boost::asio::awaitable<void> asio_leaf(std::size_t& ended) {
  ++ended;
  co_return;
}

}  // namespace weft::bench
