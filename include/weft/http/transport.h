// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Transport: a net::Stream of any type, by virtual functions. StreamTransport<S> makes one of S.
//
// Threads, Cancellation, Errors: as the stream's.
// Allocation     a frame per read and per write; a buffer from the heap per read, if the stream lends none.
#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/ok.h"
#include "weft/core/task.h"
#include "weft/http/response.h"
#include "weft/io/descriptor.h"
#include "weft/io/pooled_bytes.h"
#include "weft/net/address.h"
#include "weft/net/stream.h"
#include "weft/time/sleep.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http {

class Transport {
 public:
  virtual ~Transport() = default;

  // The next bytes. Empty: the end.
  [[nodiscard]] virtual Task<Result<PooledBytes>> read() = 0;
  [[nodiscard]] virtual Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) = 0;
  // within() of them, without a task of their own where the stream needs none.
  [[nodiscard]] virtual Task<Result<PooledBytes>> read_within(std::chrono::nanoseconds timeout);
  [[nodiscard]] virtual Task<Result<std::size_t>> write_some_within(
      std::chrono::nanoseconds timeout, std::span<const net::Part> parts);
  // What goes without waiting. Returns: how many bytes; 0: use write_some(), which also tells what is wrong.
  [[nodiscard]] virtual std::size_t try_write(std::span<const std::byte>) noexcept { return 0; }
  // Some bytes of a file, without a copy. Returns: how many; 0: it has no more. Error not_supported: it cannot, use write_some().
  [[nodiscard]] virtual Task<Result<std::size_t>> send_file(Descriptor& file, FileRange range) = 0;
  [[nodiscard]] virtual Task<Result<void>> shutdown_write() = 0;
  // What waits ends with bad_file_descriptor, and so does whatever is called later.
  virtual void close() noexcept = 0;
  // Who is there. Nothing: it has no address.
  [[nodiscard]] virtual std::optional<net::Address> peer_address() const noexcept = 0;
  // Whether nobody between can read it.
  [[nodiscard]] virtual bool is_encrypted() const noexcept = 0;
  // Whether the peer has sent nothing that was not read, and has not closed: as far as can be told without waiting.
  [[nodiscard]] virtual bool is_quiet() noexcept { return true; }
};

namespace detail {

// sendfile(2), on a socket that does not block.
[[nodiscard]] Task<Result<std::size_t>> send_file(Descriptor& socket, Descriptor& file,
                                                  FileRange range);
[[nodiscard]] bool is_quiet(const Descriptor& socket) noexcept;
// As Transport::try_write(). On io_uring 0: there a write leaves with those of other connections, by one system call.
[[nodiscard]] std::size_t try_send(const Descriptor& socket,
                                   std::span<const std::byte> bytes) noexcept;

// Whether what was agreed on is what we speak.
[[nodiscard]] inline bool is_http1(std::string_view alpn) noexcept {
  return alpn.empty() || alpn == "http/1.1";
}

template <class S>
concept OwnsSocket = requires(S& stream) {
  { stream.descriptor() } -> std::same_as<Descriptor&>;
};

// Of a stream in a stream, the innermost.
template <class S>
bool stream_is_quiet(S& stream) noexcept {
  if constexpr (OwnsSocket<S>) {
    return is_quiet(stream.descriptor());
  } else if constexpr (requires { stream.engine().may_have_plaintext(); }) {
    return !stream.engine().may_have_plaintext() && stream_is_quiet(stream.transport());
  } else if constexpr (requires { stream.is_quiet(); }) {
    return stream.is_quiet();
  } else if constexpr (requires { stream.transport(); }) {
    return stream_is_quiet(stream.transport());
  } else {
    return true;
  }
}

template <class S>
std::optional<net::Address> peer_of(const S& stream) noexcept {
  if constexpr (requires {
                  { stream.peer_address() } -> std::same_as<Result<net::Address>>;
                }) {
    if (Result<net::Address> address = stream.peer_address()) return *address;
  }
  return std::nullopt;
}

}  // namespace detail

template <net::Stream S>
class StreamTransport final : public Transport {
 public:
  explicit StreamTransport(S stream) noexcept : stream_(std::move(stream)) {}

  Task<Result<PooledBytes>> read() override {
    if (is_closed_) co_return closed();
    if constexpr (requires { stream_.read_pooled(); }) {
      co_return co_await stream_.read_pooled();
    } else {
      PooledBytes bytes = PooledBytes::allocate();
      std::size_t count = co_await ok(stream_.read_some(bytes.room()));
      bytes.set_size(count);
      co_return bytes;
    }
  }
  Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) override {
    if (is_closed_) co_return closed();
    co_return co_await stream_.write_some(parts);
  }
  Task<Result<PooledBytes>> read_within(std::chrono::nanoseconds timeout) override {
    if constexpr (requires { stream_.read_pooled(); }) {
      if (is_closed_) co_return closed();
      co_return co_await within(timeout, stream_.read_pooled());
    } else {
      co_return co_await within(timeout, read());
    }
  }
  Task<Result<std::size_t>> write_some_within(std::chrono::nanoseconds timeout,
                                              std::span<const net::Part> parts) override {
    if (is_closed_) co_return closed();
    if constexpr (requires { stream_.engine().has_output(); }) {
      // What is in a record counts as written (tls/stream.h). Here the question is what the peer has taken.
      TimePoint deadline = now() + timeout;
      Result<std::size_t> count = co_await within(timeout, stream_.write_some(parts));
      bool is_late = stream_.engine().has_output() && now() >= deadline;
      if (count && is_late) co_return std::unexpected(std::make_error_code(std::errc::timed_out));
      co_return count;
    } else {
      // The kernel takes one span with less ado than a list.
      if (parts.size() == 1) {
        co_return co_await within(timeout, stream_.write_some(parts.front().bytes()));
      }
      co_return co_await within(timeout, stream_.write_some(parts));
    }
  }
  std::size_t try_write(std::span<const std::byte> bytes) noexcept override {
    if constexpr (detail::OwnsSocket<S>) {
      if (!is_closed_) return detail::try_send(stream_.descriptor(), bytes);
    }
    return 0;
  }
  Task<Result<std::size_t>> send_file(Descriptor& file, FileRange range) override {
    if constexpr (detail::OwnsSocket<S>) {
      if (is_closed_) co_return closed();
      co_return co_await detail::send_file(stream_.descriptor(), file, range);
    } else {
      co_return std::unexpected(std::make_error_code(std::errc::not_supported));
    }
  }
  Task<Result<void>> shutdown_write() override {
    if (is_closed_) co_return closed();
    co_return co_await stream_.shutdown_write();
  }
  void close() noexcept override {
    is_closed_ = true;
    stream_.close();
  }
  std::optional<net::Address> peer_address() const noexcept override {
    return detail::peer_of(stream_);
  }
  bool is_encrypted() const noexcept override {
    return requires { S::kEncrypted; };
  }
  bool is_quiet() noexcept override { return detail::stream_is_quiet(stream_); }

  [[nodiscard]] S& stream() noexcept { return stream_; }

 private:
  static std::unexpected<std::error_code> closed() {
    return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
  }

  S stream_;
  bool is_closed_ = false;
};

}  // namespace weft::inline v0::http
