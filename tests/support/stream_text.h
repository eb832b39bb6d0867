// SPDX-License-Identifier: MIT
#pragma once
// Text over a stream of any kind. What goes wrong is thrown.
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weft/net/stream.h"
#include "weft/weft.h"

namespace weft::test {

template <class S>
Task<std::string> read_count(S& stream, std::size_t count) {
  std::string text(count, '\0');
  std::span<std::byte> rest = std::as_writable_bytes(std::span(text));
  Result<void> done = co_await net::read_exactly(stream, rest);
  or_throw(done);
  co_return text;
}
template <class S>
Task<std::string> read_to_end(S& stream) {
  std::string text;
  std::array<std::byte, 4096> buffer;
  while (true) {
    Result<std::size_t> count = co_await stream.read_some(buffer);
    if (or_throw(count) == 0) co_return text;
    text.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
}
template <class S>
Task<void> write_text(S& stream, std::string_view text) {
  Result<void> written = co_await net::write_all(stream, text);
  or_throw(written);
}

}  // namespace weft::test
