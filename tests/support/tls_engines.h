// SPDX-License-Identifier: MIT
#pragma once
// Two engines, and the wire between them: what their tests share.
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "support/certificates.h"
#include "weft/base/result.h"
#include "weft/tls/engine.h"
#include "weft/tls/error.h"

namespace weft::test {

inline const Authority& authority() {
  static const Authority one("weft test root");
  return one;
}
inline const tls::Identity& server_identity() {
  static const tls::Identity one = authority().issue("server", "DNS:localhost,IP:127.0.0.1,IP:::1");
  return one;
}
inline tls::ClientOptions client_options() {
  return {.system_roots = false, .roots_pem = authority().pem()};
}
inline tls::ServerOptions server_options() { return {.identity = server_identity()}; }
inline tls::ClientContext client_context(tls::ClientOptions options = client_options()) {
  return or_throw(tls::ClientContext::create(std::move(options)));
}
inline tls::ServerContext server_context(tls::ServerOptions options = server_options()) {
  return or_throw(tls::ServerContext::create(std::move(options)));
}

// One way from engine to engine. It keeps what is on its way.
class Wire {
 public:
  // At most so many bytes at a time.
  explicit Wire(std::size_t piece = static_cast<std::size_t>(-1)) : piece_(piece) {}

  // Returns: whether something went.
  bool carry(tls::Engine& from, tls::Engine& to) {
    if (!from.has_output() || !to.needs_input()) return false;
    std::span<const std::byte> out = from.output();
    out = out.first(std::min(out.size(), piece_));
    on_its_way_.assign(reinterpret_cast<const char*>(out.data()), out.size());
    carried_ += out.size();
    from.sent(out.size());
    to.feed(std::as_bytes(std::span(on_its_way_)));
    return true;
  }
  [[nodiscard]] std::size_t carried() const { return carried_; }

 private:
  std::size_t piece_;
  std::size_t carried_ = 0;
  std::string on_its_way_;
};

// A client and a server that face each other.
class EnginePair {
 public:
  EnginePair(const tls::ClientContext& client_context, const tls::ServerContext& server_context,
             std::string host = "localhost", std::size_t piece = static_cast<std::size_t>(-1))
      : client(client_context, std::move(host)),
        server(server_context),
        there(piece),
        back(piece) {}

  // Until both are done, or nothing moves any more. The errors, or {}.
  void shake_hands() {
    bool moved = true;
    while (moved) {
      moved = false;
      if (!client_done && !client_error) step(client, client_done, client_error);
      if (!server_done && !server_error) step(server, server_done, server_error);
      // Who is done does not use up what comes: that is for its first read.
      if (!server_done) moved = there.carry(client, server) || moved;
      if (!client_done) moved = back.carry(server, client) || moved;
    }
  }
  [[nodiscard]] bool done() const { return client_done && server_done; }

  tls::Engine client, server;
  Wire there, back;
  bool client_done = false, server_done = false;
  std::error_code client_error, server_error;

 private:
  static void step(tls::Engine& engine, bool& done, std::error_code& error) {
    Result<bool> result = engine.handshake();
    if (result) done = *result;
    if (!result) error = result.error();
  }
};

// What `to` reads of what `from` has sent and sends, until nothing moves any more.
struct Received {
  std::string text;
  bool ended = false;
  std::error_code error;
};
inline Received receive(tls::Engine& from, tls::Engine& to, Wire& wire) {
  Received received;
  std::array<std::byte, 1000> buffer;
  while (true) {
    Result<std::optional<std::size_t>> got = to.read(buffer);
    if (!got) {
      received.error = got.error();
      return received;
    }
    if (*got && **got == 0) {
      received.ended = true;
      return received;
    }
    if (*got) {
      received.text.append(reinterpret_cast<const char*>(buffer.data()), **got);
    } else if (!wire.carry(from, to)) {
      return received;
    }
  }
}
inline std::size_t write(tls::Engine& engine, std::string_view text) {
  net::Part part(text);
  return or_throw(engine.write(std::span<const net::Part>(&part, 1)));
}

}  // namespace weft::test
