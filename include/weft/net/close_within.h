// SPDX-License-Identifier: MIT
#pragma once
// weft::net::close_within(): closes a stream when the peer has read it to its end, or after a while.
//
//     Result<void> taken = co_await close_within(stream, 2s); // it is closed, whatever this says
//
// A close() drops nothing that was written, but nobody learns what became of it; and if something that the peer sent is unread then, the
// kernel resets the connection, and may take our last words along. This says that no more will be sent, drops what still comes, and
// closes when the peer has ended its side, too. TcpOptions::reset_on_close is the opposite: close() drops all, at once.
//
// SO_LINGER with a time is meant for the same, and is no option here: Linux lets close() wait for it, in the thread, also where
// the socket is not blocking, and so everything on that loop would wait.
//
// Returns        nothing: the peer has ended its side. std::errc::timed_out: it has not, in time. std::errc::message_size: it went on
//                sending, more than kDroppedBytesMax. Otherwise what the stream says.
// Cancellation   a cancel point; the stream is closed.
// Allocation     a frame or two.
#include <array>
#include <chrono>
#include <cstddef>
#include <system_error>

#include "weft/base/result.h"
#include "weft/core/ok.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::net {

inline constexpr std::size_t kDroppedBytesMax = 1024 * 1024;

namespace detail {

template <Stream S>
Task<Result<void>> end_and_drop(S& stream) {
  co_await ok(stream.shutdown_write());
  std::array<std::byte, 4096> dropped;
  for (std::size_t bytes = 0; bytes <= kDroppedBytesMax;) {
    std::size_t count = co_await ok(stream.read_some(dropped));
    if (count == 0) co_return {};
    bytes += count;
  }
  co_return std::unexpected(std::make_error_code(std::errc::message_size));
}

}  // namespace detail

// Requires: nobody else uses `stream`, which lives until this has ended.
template <Stream S>
Task<Result<void>> close_within(S& stream, std::chrono::milliseconds time) {
  struct Closes {
    S& stream;
    explicit Closes(S& of) : stream(of) {}
    Closes(const Closes&) = delete;
    Closes& operator=(const Closes&) = delete;
    ~Closes() { stream.close(); }
  } closes(stream);
  co_return co_await within(time, detail::end_and_drop(stream));
}

}  // namespace weft::inline v0::net
