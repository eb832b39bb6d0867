// SPDX-License-Identifier: MIT
#pragma once
// The children of the Asio contestant, where the compiler cannot see them from the awaiting side.

#include <boost/asio/awaitable.hpp>
#include <cstddef>

namespace weft::bench {

boost::asio::awaitable<int> asio_child(int value);
boost::asio::awaitable<void> asio_leaf(std::size_t& ended);

}  // namespace weft::bench
