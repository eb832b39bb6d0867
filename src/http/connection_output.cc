// SPDX-License-Identifier: MIT
// Http1Connection: how its bytes leave, and how it ends.
#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "connection.h"
#include "weft/http/error.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http::detail {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// What linger() reads at most.
constexpr std::size_t kLingerBytesMax = 256 * 1024;

}  // namespace

std::error_code Http1Connection::as_write_error(const std::error_code& error) const noexcept {
  return error == std::errc::timed_out ? make_error_code(Error::write_timeout) : error;
}

// How long the peer may take until it takes something.
nanoseconds Http1Connection::write_patience() const noexcept {
  return write_pace_.patience({.silence = limits().write_timeout,
                               .rate_min = limits().write_rate_min,
                               .grace = limits().write_grace});
}

// Returns: whether all of it has left, without waiting. What has not is write_out()'s.
bool Http1Connection::write_now() {
  if (write_turn_.is_locked() || write_error_ || sent_ < sending_.size()) return false;
  std::size_t count = transport_.try_write(std::as_bytes(std::span(out_)));
  if (count == 0) return false;
  answer_at_ = 0;
  bool is_all = count == out_.size();
  if (!is_all) {
    sending_.swap(out_);
    sent_ = count;
  }
  out_.clear();
  return is_all;
}

// Where a write is not made but given to the kernel, the answers leave while the next request is waited for. Not while one of those
// who write may still be at it, nor with a part of a request at hand, whose time runs.
Descriptor* Http1Connection::shared_wait() noexcept {
  if (!parser_.head().empty() || is_stopping_ || write_error_) return nullptr;
  if (overtaken_.is_starting() || write_turn_.is_locked() || sent_ < sending_.size())
    return nullptr;
  return writes_and_reads() ? transport_.socket() : nullptr;
}

std::span<const std::byte> Http1Connection::begin_sending() noexcept {
  sending_.clear();
  sending_.swap(out_);
  sent_ = 0;
  answer_at_ = 0;
  return std::as_bytes(std::span(sending_));
}

// From now on this is an idle connection.
bool Http1Connection::written() noexcept {
  sent_ = sending_.size();
  waits_for_request_ = !is_stopping_;
  rest();
  return waits_for_request_;
}

Http1Connection::After Http1Connection::after_exchange(WrittenAndRead outcome) {
  if (has_output()) sent_ += outcome.written;  // not all of it: the rest goes first
  if (!outcome.read) return After::next;
  return after_wait(std::move(*outcome.read));
}

// One at a time: a handler may read the body in one task and write in another. What comes into out_ meanwhile is not touched
// by the kernel, because what it has in hand lies in sending_.
Task<Result<void>> Http1Connection::write_out(Piece piece) {
  LocalMutexGuard turn = co_await write_turn_.lock();
  if (write_error_) co_return std::unexpected(write_error_);
  // What a cancelled write has left goes first, and what was written since then right behind it.
  sending_.erase(0, sent_);
  sent_ = 0;
  if (sending_.empty()) {
    sending_.swap(out_);
  } else {
    sending_ += out_;
    out_.clear();
  }
  answer_at_ = 0;
  std::string_view before = piece.before, after = piece.after;
  std::span<const std::byte> bytes = piece.bytes;
  while (true) {
    std::array<net::Part, 4> parts{net::Part(std::string_view(sending_).substr(sent_)),
                                   net::Part(before), net::Part(bytes), net::Part(after)};
    std::span<net::Part> rest(parts);
    net::drop_front(rest, 0);
    if (rest.empty()) co_return {};
    std::span<const net::Part> list(rest);
    Result<std::size_t> count;
    {
      Pace::Waits waits(write_pace_);
      milliseconds silence = limits().write_timeout;
      nanoseconds patience = write_patience();
      if (patience < silence) {  // that one's time runs between two writes, too
        count = co_await within(patience, transport_.write_some_within(silence, list));
      } else {
        count = co_await transport_.write_some_within(silence, list);
      }
    }
    if (!count) co_return std::unexpected(write_error_ = as_write_error(count.error()));
    write_pace_.moved(*count);
    std::size_t left = *count;
    auto take = [&left](std::size_t size) {
      std::size_t taken = std::min(left, size);
      left -= taken;
      return taken;
    };
    sent_ += take(sending_.size() - sent_);
    before.remove_prefix(take(before.size()));
    bytes = bytes.subspan(take(bytes.size()));
    after.remove_prefix(take(after.size()));
  }
}

// The last bytes leave. `lingers`: something may still be on its way to us; so it may when the end was not the peer's idea.
Task<void> Http1Connection::end(bool lingers) {
  Result<void> written = co_await write_out();
  if (!written) co_return;
  // To a peer that reads until the end, TLS's farewell would say that this was all (H4).
  Task<Result<void>> ending = is_broken_ ? transport_.cut_write() : transport_.shutdown_write();
  Result<void> shut = co_await within(limits().linger_timeout, std::move(ending));
  if (shut && (lingers || peer_goes_on_ || !input_.next().empty())) co_await linger();
}

// Reads what is still on its way, so that the kernel does not reset the connection and our last answer with it.
Task<void> Http1Connection::linger() {
  auto drop = [this]() -> Task<void> {
    for (std::size_t dropped = 0; dropped < kLingerBytesMax;) {
      Result<PooledBytes> bytes = co_await transport_.read();
      if (!bytes || bytes->empty()) co_return;
      dropped += bytes->size();
    }
  };
  co_await timeout(limits().linger_timeout, drop);
}

}  // namespace weft::inline v0::http::detail
