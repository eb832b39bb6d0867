// SPDX-License-Identifier: MIT
#pragma once
// weft::net::Stream: what carries bytes both ways, and what is made of that.
//
//     std::span<const std::byte> rest = message;
//     Result<void> sent = co_await write_all(stream, rest);     // cancelled: `rest` is what is left
//     Result<std::size_t> got = co_await within(2s, stream.read_some(buffer));
//
// TcpStream, UnixStream and MemoryStream are Streams. docs/design/net.md has the rules that they keep, and
// tests/conformance/stream_test.cc examines each.
//
// Cancellation   a cancel point on every call. read_some() and write_some() took nothing, or deliver
//                what they took (L5). read_exactly() and write_all() advance the caller's span before
//                they wait again: after a cancel it begins with the first byte that was not
//                transferred.
// Errors         as Result. An end where more was asked for is Error::unexpected_end.
// Allocation     read_exactly(), write_all(): a frame.
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/concepts.h"
#include "weft/core/ok.h"
#include "weft/core/task.h"
#include "weft/net/error.h"

namespace weft::inline v0::net {

// One of several spans that are written as one. It does not own them.
struct Part : iovec {
  Part() noexcept : iovec{} {}
  Part(std::span<const std::byte> bytes) noexcept
      : iovec{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()} {}
  Part(std::string_view text) noexcept : Part(std::as_bytes(std::span(text))) {}

  [[nodiscard]] std::size_t size() const noexcept { return iov_len; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(iov_base), iov_len};
  }
};
static_assert(sizeof(Part) == sizeof(iovec), "the kernel reads an array of them");

template <class S>
concept Stream = requires(S& stream, std::span<std::byte> buffer, std::span<const std::byte> bytes,
                          std::span<const Part> parts) {
  // Returns: bytes read; 0: the end.
  { stream.read_some(buffer) } -> Awaitable<Result<std::size_t>>;
  // Returns: bytes written, at least 1 if there were some.
  { stream.write_some(bytes) } -> Awaitable<Result<std::size_t>>;
  { stream.write_some(parts) } -> Awaitable<Result<std::size_t>>;
  // The peer reads the end after what was written. Reading goes on.
  { stream.shutdown_write() } -> Awaitable<Result<void>>;
  { stream.close() } noexcept;
};

// Takes `count` bytes off the front of `parts`, and what is empty then, at the end too: a single part costs the kernel less.
void drop_front(std::span<Part>& parts, std::size_t count) noexcept;

// Fills `rest`, and advances it meanwhile.
template <Stream S>
Task<Result<void>> read_exactly(S& stream, std::span<std::byte>& rest) {
  while (!rest.empty()) {
    std::size_t count = co_await ok(stream.read_some(rest));
    if (count == 0) co_return std::unexpected(make_error_code(Error::unexpected_end));
    rest = rest.subspan(count);
  }
  co_return {};
}

// Writes `rest`, and advances it meanwhile.
template <Stream S>
Task<Result<void>> write_all(S& stream, std::span<const std::byte>& rest) {
  while (!rest.empty()) {
    std::size_t count = co_await ok(stream.write_some(rest));
    rest = rest.subspan(count);
  }
  co_return {};
}
// The parts that were written leave the list; of one that was written in part the rest stays.
template <Stream S>
Task<Result<void>> write_all(S& stream, std::span<Part>& rest) {
  drop_front(rest, 0);  // an empty one would be a write of nothing
  while (!rest.empty()) {
    std::size_t count = co_await ok(stream.write_some(std::span<const Part>(rest)));
    drop_front(rest, count);
  }
  co_return {};
}

namespace detail {

template <Stream S>
Task<Result<void>> read_into(S& stream, std::span<std::byte> rest) {
  co_return co_await read_exactly(stream, rest);
}
template <Stream S>
Task<Result<void>> write_from(S& stream, std::span<const std::byte> rest) {
  co_return co_await write_all(stream, rest);
}

}  // namespace detail

// Without a cursor: who is cancelled then does not learn how far it went, and had best close the stream.
template <Stream S>
Task<Result<void>> read_exactly(S& stream, std::span<std::byte>&& buffer) {
  return detail::read_into(stream, buffer);
}
template <Stream S>
Task<Result<void>> write_all(S& stream, std::span<const std::byte>&& bytes) {
  return detail::write_from(stream, bytes);
}
template <Stream S>
Task<Result<void>> write_all(S& stream, std::string_view text) {
  return detail::write_from(stream, std::as_bytes(std::span(text)));
}

}  // namespace weft::inline v0::net
