// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::ClientContext, ServerContext: what the connections of a program have in common.
//
//     ClientContext client = or_throw(ClientContext::create({.alpn = {"http/1.1"}}));
//     ServerContext server = or_throw(ServerContext::create({.identity = ours}));
//     or_throw(server.reload(renewed));      // new connections; those that are open do not notice
//
// Verification is on: a client accepts a server whose certificate the system's roots, or `roots_pem`, vouch for, and that
// names the host that was asked for. TLS 1.2 and 1.3, no renegotiation. docs/design/tls.md has the table.
//
// Threads        all members, any thread, concurrently. Copies share one context.
// Errors         as Result: Error::bad_certificate, bad_key, key_does_not_match, bad_roots.
// Allocation     create(), reload(): a context of OpenSSL's, some 100 KiB with the system's roots.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/tls/identity.h"

namespace weft::inline v0::tls {

class Engine;

inline constexpr std::chrono::seconds kHandshakeTimeout{10};
inline constexpr std::size_t kSessionHostsMax = 1024;  // of a client context's memory
inline constexpr std::size_t kSessionsPerHostMax = 4;  // the newest

enum class Version : std::uint8_t { tls_1_2, tls_1_3 };
struct Versions {
  Version from = Version::tls_1_2;
  Version to = Version::tls_1_3;
};

struct ClientOptions {
  bool system_roots = true;            // accept whom the system accepts
  std::string roots_pem{};             // and whom these vouch for
  std::vector<std::string> alpn{};     // in order of preference; empty: none are offered
  std::optional<Identity> identity{};  // to show to a server that asks for one
  bool resume_sessions = true;
  Versions versions{};
  std::chrono::nanoseconds handshake_timeout = kHandshakeTimeout;
  // Anybody between here and there can then read and change everything. For tests of other things.
  bool dangerously_accept_any_certificate = false;
};

// Whether a server asks for a certificate, and lets in who has none.
enum class ClientCertificate : std::uint8_t { not_asked, optional, required };

struct ServerOptions {
  Identity identity{};
  std::vector<std::string>
      alpn{};  // in order of preference; empty: whatever the client offers is ignored
  ClientCertificate client_certificate = ClientCertificate::not_asked;
  std::string client_roots_pem{};  // who vouches for clients. Not empty, if they are asked
  bool resume_sessions = true;     // hands out tickets
  Versions versions{};
  std::chrono::nanoseconds handshake_timeout = kHandshakeTimeout;
};

namespace detail {
class ContextCell;
}

class ClientContext {
 public:
  [[nodiscard]] static Result<ClientContext> create(ClientOptions options = {});

  // From now on this is shown to servers that ask.
  [[nodiscard]] Result<void> reload(Identity identity) const;
  [[nodiscard]] std::chrono::nanoseconds handshake_timeout() const noexcept;
  // Sessions that wait to be resumed.
  [[nodiscard]] std::size_t session_count() const noexcept;

 private:
  friend class Engine;
  explicit ClientContext(std::shared_ptr<detail::ContextCell> cell) noexcept
      : cell_(std::move(cell)) {}

  std::shared_ptr<detail::ContextCell> cell_;
};

class ServerContext {
 public:
  [[nodiscard]] static Result<ServerContext> create(ServerOptions options);

  // Handshakes that begin from now on show it. On an error everything stays as it was.
  [[nodiscard]] Result<void> reload(Identity identity) const;
  [[nodiscard]] std::chrono::nanoseconds handshake_timeout() const noexcept;

 private:
  friend class Engine;
  explicit ServerContext(std::shared_ptr<detail::ContextCell> cell) noexcept
      : cell_(std::move(cell)) {}

  std::shared_ptr<detail::ContextCell> cell_;
};

}  // namespace weft::inline v0::tls
