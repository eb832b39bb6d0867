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
#include <expected>
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
#include "weft/tls/engine.h"
#include "weft/tls/stoppable.h"

namespace weft::inline v0::http {

namespace detail {

// Since when a peer has taken nothing of what it was offered. A wait that is given up, and begun again, is the same one.
class Stall {
 public:
  // A write begins. Returns: until when it may wait. Who begins when it is too late tries once more, for kLastTry: that nobody has tried
  // for a while is not the peer's fault.
  [[nodiscard]] TimePoint begin(std::chrono::nanoseconds timeout);
  // The same, of a write that goes on.
  [[nodiscard]] TimePoint deadline(std::chrono::nanoseconds timeout) const noexcept;
  // It took something at that time. Returns: false, if that was known.
  bool ends_at(TimePoint when) noexcept;
  void end() noexcept { is_on_ = is_last_try_ = false; }

 private:
  static constexpr std::chrono::milliseconds kLastTry{10};

  TimePoint since_{};
  bool is_on_ = false;
  bool is_last_try_ = false;
};

}  // namespace detail

class Transport {
 public:
  virtual ~Transport() = default;

  // The next bytes. Empty: the end.
  [[nodiscard]] virtual Task<Result<PooledBytes>> read() = 0;
  [[nodiscard]] virtual Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) = 0;
  // within() of them, without a task of their own where the stream needs none. Of a write the time is counted from when the peer has
  // last taken a byte, also if a wait was given up meanwhile.
  [[nodiscard]] virtual Task<Result<PooledBytes>> read_within(std::chrono::nanoseconds timeout);
  [[nodiscard]] virtual Task<Result<std::size_t>> write_some_within(
      std::chrono::nanoseconds timeout, std::span<const net::Part> parts);
  // What goes without waiting. Returns: how many bytes; 0: use write_some(), which also tells what is wrong.
  [[nodiscard]] virtual std::size_t try_write(std::span<const std::byte>) noexcept { return 0; }
  // The socket itself, if bytes go through it as they are. Null: they do not, or it is closed.
  [[nodiscard]] virtual Descriptor* socket() noexcept { return nullptr; }
  // Some bytes of a file, without a copy. Returns: how many; 0: it has no more. Error not_supported: it cannot, use write_some().
  [[nodiscard]] virtual Task<Result<std::size_t>> send_file(Descriptor& file, FileRange range) = 0;
  [[nodiscard]] virtual Task<Result<void>> shutdown_write() = 0;
  // The same, of something that is not whole: where an end can be told from a cut, the peer is to see a cut.
  [[nodiscard]] virtual Task<Result<void>> cut_write() { return shutdown_write(); }
  // Before a close() in a pause of the conversation: says that this is the end, if it has to be said (RFC 9112, 9.8) and if that
  // can be done without waiting. Requires: nothing is being written.
  virtual void say_goodbye() noexcept {}
  // What waits ends with bad_file_descriptor, and so does whatever is called later.
  virtual void close() noexcept = 0;
  // Who is there. Nothing: it has no address.
  [[nodiscard]] virtual std::optional<net::Address> peer_address() const noexcept = 0;
  // Whether nobody between can read it.
  [[nodiscard]] virtual bool is_encrypted() const noexcept = 0;
  // Whether the peer has sent nothing that was not read, and has not closed: as far as can be told without waiting.
  [[nodiscard]] virtual bool is_quiet() noexcept { return true; }
  // Who the peer is, by a certificate that was verified. Nothing: it showed none, or was not asked.
  [[nodiscard]] virtual std::optional<tls::PeerCertificate> peer_certificate() const {
    return std::nullopt;
  }

 protected:
  detail::Stall stall_;
};

namespace detail {

// sendfile(2), on a socket that does not block.
[[nodiscard]] Task<Result<std::size_t>> send_file(Descriptor& socket, Descriptor& file,
                                                  FileRange range);
[[nodiscard]] bool is_quiet(const Descriptor& socket) noexcept;
// As Transport::try_write(). On io_uring 0: there a write leaves with those of other connections, by one system call.
[[nodiscard]] std::size_t try_send(const Descriptor& socket,
                                   std::span<const std::byte> bytes) noexcept;
// The same, on every driver. Requires: nobody else writes.
[[nodiscard]] std::size_t send_now(const Descriptor& socket,
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

// What goes without waiting.
template <class S>
std::size_t stream_sends_now(S& stream, std::span<const std::byte> bytes) noexcept {
  if constexpr (OwnsSocket<S>) {
    return send_now(stream.descriptor(), bytes);
  } else if constexpr (requires { stream.try_write(bytes); }) {
    return stream.try_write(bytes);
  } else {
    return 0;
  }
}

template <class S>
concept EncryptedStream = requires(S& stream) { stream.engine().has_output(); };

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
    if constexpr (detail::EncryptedStream<S>) {
      co_return co_await write_records_within(timeout, parts);
    } else {
      TimePoint until = stall_.begin(timeout);
      std::expected<Result<std::size_t>, TimedOut> count = std::unexpected(TimedOut());
      // The kernel takes one span with less ado than a list.
      if (parts.size() == 1) {
        count = co_await deadline(until, stream_.write_some(parts.front().bytes()));
      } else {
        count = co_await deadline(until, stream_.write_some(parts));
      }
      if (!count) co_return late();
      if (*count) stall_.end();
      co_return *count;
    }
  }
  std::size_t try_write(std::span<const std::byte> bytes) noexcept override {
    if constexpr (detail::OwnsSocket<S>) {
      if (!is_closed_) return detail::try_send(stream_.descriptor(), bytes);
    }
    return 0;
  }
  Descriptor* socket() noexcept override {
    if constexpr (detail::OwnsSocket<S>) {
      return is_closed_ ? nullptr : &stream_.descriptor();
    } else {
      return nullptr;
    }
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
  Task<Result<void>> cut_write() override {
    if (is_closed_) co_return closed();
    if constexpr (detail::EncryptedStream<S>) {
      co_return co_await stream_.transport().shutdown_write();  // and no close_notify
    } else {
      co_return co_await stream_.shutdown_write();
    }
  }
  void say_goodbye() noexcept override {
    if constexpr (detail::EncryptedStream<S>) {
      if (is_closed_) return;
      stream_.end_now([this](std::span<const std::byte> bytes) noexcept {
        return detail::stream_sends_now(stream_.transport(), bytes);
      });
    }
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
  std::optional<tls::PeerCertificate> peer_certificate() const override {
    if constexpr (requires { stream_.peer_certificate(); }) {
      return stream_.peer_certificate();
    } else {
      return std::nullopt;
    }
  }

  [[nodiscard]] S& stream() noexcept { return stream_; }

 private:
  static std::unexpected<std::error_code> closed() {
    return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
  }
  static std::unexpected<std::error_code> late() {
    return std::unexpected(std::make_error_code(std::errc::timed_out));
  }

  // What is in a record counts as written (tls/stream.h). Here the question is what the peer takes: as long as it takes some, there is
  // time for the rest.
  Task<Result<std::size_t>> write_records_within(std::chrono::nanoseconds timeout,
                                                 std::span<const net::Part> parts)
    requires detail::EncryptedStream<S>
  {
    stall_.ends_at(stream_.sent_at());
    if (!stream_.engine().has_output()) stall_.end();  // a read has sent what was left
    auto count = co_await deadline(stall_.begin(timeout), stream_.write_some(parts));
    while (!count) {
      if (!stall_.ends_at(stream_.sent_at())) co_return late();
      count = co_await deadline(stall_.deadline(timeout), stream_.write_some(parts));
    }
    while (*count && stream_.engine().has_output()) {
      stall_.ends_at(stream_.sent_at());
      TimePoint until = stall_.deadline(timeout);
      if (now() >= until) co_return late();
      auto rest = co_await tls::detail::stoppable(deadline(until, stream_.flush()));
      if (!rest) co_return *count;  // cancelled, and written all the same (L5)
      if (*rest && !**rest) co_return std::unexpected((*rest)->error());
    }
    if (*count) stall_.end();
    co_return *count;
  }

  S stream_;
  bool is_closed_ = false;
};

}  // namespace weft::inline v0::http
