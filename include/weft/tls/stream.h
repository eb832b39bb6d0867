// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::Stream<S>: TLS over S, which is any net::Stream. A Stream itself.
//
//     tls::Stream stream(std::move(tcp), context, "example.org");        // a client
//     co_await ok(stream.handshake());
//     co_await ok(net::write_all(stream, "GET / HTTP/1.1\r\n…"));
//
//     auto stream = co_await tls::connect(std::move(tcp), context, "example.org");    // both in one
//     auto stream = co_await tls::accept(std::move(tcp), server_context);
//
// Threads        the transport's loop. One reader and one writer at a time, beside each other; a second of a kind gets a
//                UsageError. Moving it: while no operation is under way; transport().move_to(loop) then moves both.
// Cancellation   a cancel point on every call. A cancelled read took nothing. write_some() took nothing, or delivers
//                what it took: plaintext that is in a record counts as written, and the part of the record that
//                is not sent goes out with the next operation, with a read that waits already, or with flush().
//                A cancelled handshake() can be called again.
// Errors         as Result: tls::Error; std::errc::timed_out (handshake), broken_pipe (after shutdown_write()); those of
//                the transport. failure() has the first of tls/ in words.
// Closing        shutdown_write() says close_notify; the other way stays open. close() says nothing: the peer reads
//                Error::truncated. It ends what waits with std::errc::bad_file_descriptor. The destructor requires that
//                nothing does.
// Allocation     one block per connection, and OpenSSL's own; a frame per operation.
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/io/pooled_bytes.h"
#include "weft/net/stream.h"
#include "weft/time/sleep.h"
#include "weft/tls/connection.h"
#include "weft/tls/context.h"
#include "weft/tls/engine.h"
#include "weft/tls/error.h"

namespace weft::inline v0::tls {

template <net::Stream S>
class [[nodiscard]] Stream {
 public:
  static constexpr bool kEncrypted = true;

  Stream() noexcept = default;
  // `host`: as Engine.
  Stream(S transport, const ClientContext& context, std::string host)
      : connection_(std::make_unique<detail::Connection<S>>(std::move(transport), context,
                                                            std::move(host))) {}
  Stream(S transport, const ServerContext& context)
      : connection_(std::make_unique<detail::Connection<S>>(std::move(transport), context)) {}

  // Before everything else. Ends within the context's handshake_timeout.
  [[nodiscard]] Task<Result<void>> handshake() {
    return connection_ ? connection_->handshake() : closed<void>();
  }

  // Returns: bytes read; 0: the peer said that this is the end.
  [[nodiscard]] Task<Result<std::size_t>> read_some(std::span<std::byte> buffer) {
    return connection_ ? connection_->read(buffer) : closed<std::size_t>();
  }
  // The same, in a buffer that is taken when there is something to put into it: a connection that waits has none. Empty: the end.
  [[nodiscard]] Task<Result<PooledBytes>> read_pooled() {
    return connection_ ? connection_->read_pooled() : closed<PooledBytes>();
  }
  // Returns: bytes written, at least 1 if there were some.
  [[nodiscard]] Task<Result<std::size_t>> write_some(std::span<const std::byte> bytes) {
    return connection_ ? connection_->write(bytes) : closed<std::size_t>();
  }
  [[nodiscard]] Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) {
    return connection_ ? connection_->write(parts) : closed<std::size_t>();
  }
  // Sends what a cancelled write has left unsent.
  [[nodiscard]] Task<Result<void>> flush() {
    return connection_ ? connection_->flush() : closed<void>();
  }
  [[nodiscard]] Task<Result<void>> shutdown_write() {
    return connection_ ? connection_->end() : closed<void>();
  }
  // close_notify, as far as it can be sent without waiting: before a close(). `send(bytes)` returns how many the transport took, 0: none
  // at this moment. Does nothing while something is being sent, or before the handshake.
  template <class Send>
  void end_now(Send send) noexcept {
    if (connection_) connection_->end_now(send);
  }
  void close() noexcept {
    if (connection_) connection_->close();
  }

  // All of these, Requires: not moved from.
  [[nodiscard]] auto peer_address() const noexcept
    requires requires(const S& transport) { transport.peer_address(); }
  {
    return connection_->transport().peer_address();
  }
  [[nodiscard]] S& transport() noexcept { return connection_->transport(); }
  [[nodiscard]] Engine& engine() noexcept { return connection_->engine(); }
  [[nodiscard]] std::string_view alpn() const noexcept { return connection_->engine().alpn(); }
  [[nodiscard]] Version version() const noexcept { return connection_->engine().version(); }
  [[nodiscard]] bool is_resumed() const noexcept { return connection_->engine().is_resumed(); }
  // When the transport has last taken something of what was to be sent.
  [[nodiscard]] TimePoint sent_at() const noexcept { return connection_->sent_at(); }
  [[nodiscard]] std::optional<PeerCertificate> peer_certificate() const {
    return connection_->engine().peer_certificate();
  }
  [[nodiscard]] const std::string& failure() const noexcept {
    return connection_->engine().failure();
  }

 private:
  template <class T>
  static Task<Result<T>> closed() {
    co_return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
  }

  std::unique_ptr<detail::Connection<S>> connection_;
};

namespace detail {

template <net::Stream S>
Task<Result<Stream<S>>> shake_hands(Stream<S> stream, std::string* why) {
  Result<void> done = co_await stream.handshake();
  if (done) co_return std::move(stream);
  if (why) *why = stream.failure().empty() ? done.error().message() : stream.failure();
  co_return std::unexpected(done.error());
}

}  // namespace detail

// A stream whose handshake is done. `why`, where given, is told in words what went wrong.
template <net::Stream S>
[[nodiscard]] Task<Result<Stream<S>>> connect(S transport, const ClientContext& context,
                                              std::string host, std::string* why = nullptr) {
  return detail::shake_hands(Stream<S>(std::move(transport), context, std::move(host)), why);
}
template <net::Stream S>
[[nodiscard]] Task<Result<Stream<S>>> accept(S transport, const ServerContext& context,
                                             std::string* why = nullptr) {
  return detail::shake_hands(Stream<S>(std::move(transport), context), why);
}

}  // namespace weft::inline v0::tls
