// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::Engine: one connection's TLS, without the connection. Bytes in, bytes out; it never waits.
//
//     Engine engine(context, "example.org");
//     while (!or_throw(engine.handshake())) {       // false: it needs more
//       send(engine.output()); engine.sent(…);
//       engine.feed(receive());
//     }
//
// tls::Stream puts it on a net::Stream. It is a class of its own for tests, and for what carries TLS in ways of its own.
//
// After each call output() may have grown, after an error too: that is the alert which tells the peer.
//
// Threads        one at a time.
// Errors         as Result; after the first, every call returns the same (T5). UsageError for a read or write before
//                the handshake.
// Allocation     output: see OutputBuffer. OpenSSL's own: some 10 KiB per connection, and a buffer for a record while
//                it has bytes of one.
//
// Invariants
//   I1  input_ is what was fed and not used. OpenSSL reads from nowhere else.
//   I2  what OpenSSL wrote is in output_, in order, until sent(). A write of OpenSSL's never fails for want of room, so no
//       record is ever half written.
//   I3  after end(), nothing is added to output_.
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/stream.h"
#include "weft/tls/context.h"
#include "weft/tls/output_buffer.h"

struct ssl_st;
struct ssl_session_st;

namespace weft::inline v0::tls {

namespace detail {
class Snapshot;
struct EngineCallbacks;
}  // namespace detail

// Who the peer is, as its certificate says.
struct PeerCertificate {
  std::string subject;  // as RFC 2253 writes it: CN=alice,O=Example
  std::string issuer;
  std::vector<std::string> names;  // of its subjectAltName, hosts and IP addresses
  std::string sha256;  // of the whole of it, in hexadecimal: the same certificate, the same text
};

class Engine {
 public:
  // `host`, a name or an IP address, is whom the certificate must name. UsageError if it is empty, unless any certificate is
  // accepted. Throws std::bad_alloc.
  Engine(const ClientContext& context, std::string host);
  explicit Engine(const ServerContext& context);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // --- The transport's side -----------------------------------------------------------------------

  // Whether what was fed is used up.
  [[nodiscard]] bool needs_input() const noexcept { return input_.empty(); }
  // Requires: needs_input(); the bytes stay where they are until it is true again.
  void feed(std::span<const std::byte> bytes) noexcept { input_ = bytes; }
  // The transport has ended.
  void feed_end() noexcept { input_ended_ = true; }

  // What is to be sent, as much of it as lies together. It stays there until sent(), whatever is called meanwhile.
  [[nodiscard]] std::span<const std::byte> output() const noexcept { return output_.front(); }
  [[nodiscard]] bool has_output() const noexcept { return output_.size() > 0; }
  [[nodiscard]] std::size_t output_size() const noexcept { return output_.size(); }
  void sent(std::size_t count) noexcept { output_.take(count); }
  // It can not be sent any more. Requires: nobody is sending it.
  void drop_output() noexcept { output_.clear(); }

  // --- The user's side ----------------------------------------------------------------------------

  // Returns: true: it is done; false: it needs more input.
  [[nodiscard]] Result<bool> handshake();
  [[nodiscard]] bool is_handshaken() const noexcept { return handshaken_; }
  // Returns: bytes read, of several records if they are there; 0: the peer's end; nothing: it needs more input.
  [[nodiscard]] Result<std::optional<std::size_t>> read(std::span<std::byte> buffer);
  // False: read() would say that it needs more input.
  [[nodiscard]] bool may_have_plaintext() const noexcept;
  // Takes from the front of `parts` what fits into the output. Returns: how many bytes; 0, although there are some:
  // output() must be sent first, or is_within_message(). std::errc::broken_pipe after end().
  [[nodiscard]] Result<std::size_t> write(std::span<const net::Part> parts);
  // No more is written: close_notify. Once is enough. std::errc::resource_unavailable_try_again: not yet, is_within_message().
  [[nodiscard]] Result<void> end();
  // Of a message that follows the handshake (a ticket, a key update) one record has come, and the next has not: until it was
  // fed, OpenSSL neither encrypts nor ends.
  [[nodiscard]] bool is_within_message() const noexcept { return within_message_; }

  // --- What was agreed on, after the handshake ----------------------------------------------------

  [[nodiscard]] bool is_server() const noexcept { return server_; }
  [[nodiscard]] Version version() const noexcept;
  [[nodiscard]] std::string_view cipher() const noexcept;
  // Empty: none.
  [[nodiscard]] std::string_view alpn() const noexcept;
  [[nodiscard]] bool is_resumed() const noexcept;
  // Whom this is about: a client's host; the name that a server was asked for, or empty.
  [[nodiscard]] std::string_view host() const noexcept;
  [[nodiscard]] std::optional<PeerCertificate> peer_certificate() const;
  [[nodiscard]] std::chrono::nanoseconds handshake_timeout() const noexcept { return timeout_; }

  // The first error in words, with OpenSSL's own, the host, and what can be done. Empty: there was none.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_text_; }
  // OpenSSL's object, for what is not here. It is the Engine's.
  [[nodiscard]] ssl_st* native() noexcept { return ssl_; }

 private:
  friend struct detail::EngineCallbacks;

  Engine(std::shared_ptr<const detail::Snapshot> snapshot, std::chrono::nanoseconds timeout,
         bool server);
  void expect_host();
  void resume_session();
  std::unexpected<std::error_code> fail(std::error_code error, std::string_view detail);
  // OpenSSL has an error in its queue, or had no memory.
  std::unexpected<std::error_code> fail_by_openssl();
  void check_handshaken() const;
  // Reads the rest of the message that is under way, if there is one. Returns: false: it has not come.
  Result<bool> finish_message();

  std::shared_ptr<const detail::Snapshot> snapshot_;
  ssl_st* ssl_ = nullptr;
  std::span<const std::byte> input_;
  detail::OutputBuffer output_;
  std::string host_;
  std::error_code failure_;
  std::string failure_text_;
  std::chrono::nanoseconds timeout_;
  const bool server_;
  bool handshaken_ = false;
  bool starved_ = false;  // OpenSSL asked for input, and there was none
  bool within_message_ = false;
  bool input_ended_ = false;
  bool peer_ended_ = false;  // by close_notify
  bool ended_ = false;       // by end()
};

}  // namespace weft::inline v0::tls
