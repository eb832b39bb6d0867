// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Handler: what answers requests.
//
//     class Hello final : public http::Handler {
//       Task<void> handle_request(const http::Request&, http::Response& response, http::Connection&) override {
//         response.body("text/plain", "Hello.\n");
//         co_return;
//       }
//     };
//
// One object answers for many connections, on the loop of each: on several workers it is called on several threads.
// What it throws is logged, and the answer is 500 (or the end of the connection, if the answer was begun). A peer
// that has gone is told by the next read or write.
//
// http::Router (router.h) is one that looks for another.
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/request.h"
#include "weft/http/response.h"
#include "weft/http/transport.h"

namespace weft::inline v0::http {

// What carries this request.
class Connection {
 public:
  // Who asks. Nothing: what carries it has no addresses.
  [[nodiscard]] virtual std::optional<net::Address> peer_address() const = 0;
  [[nodiscard]] virtual bool is_encrypted() const noexcept = 0;
  // Who asks, by a certificate: its issuer is one that tls::ServerOptions::client_roots_pem trusts, or the handshake would have failed.
  // Nothing: it has shown none, or was not asked for one. Made anew at each call.
  [[nodiscard]] virtual std::optional<tls::PeerCertificate> peer_certificate() const {
    return std::nullopt;
  }

  // Another protocol takes over: sends 101 with the response's header fields, and gives the transport away.
  // From then on the response has been sent, and the connection closes when the handler returns. Errors: not_supported if
  // the client has not offered `protocol`, its version has no upgrade, or its body was not read; or what the transport says. UsageError: the
  // answer was begun.
  struct Upgraded {
    Transport* transport = nullptr;
    std::vector<std::byte> read_ahead;  // what the peer sent behind its request
  };
  [[nodiscard]] virtual Task<Result<Upgraded>> upgrade(Response& response,
                                                       std::string_view protocol) = 0;
  // `tell` is called, on the loop, when the server begins to stop: for a protocol that has taken over, and does not know of it
  // otherwise. At once, if it has begun. An empty one takes the last one back: at the latest before the handler returns.
  virtual void on_stop(std::function<void()> tell) = 0;
  // Returns when the peer has closed the connection, or its half of it, or reset it: most likely nobody reads the answer.
  // For a handler that has nothing to write for a while; a write would tell. If the peer sends a further request meanwhile, or
  // has sent it already, or its body was not read, there is nothing to be seen, and this waits until it is cancelled.
  // A cancel point. UsageError: another task waits for it.
  [[nodiscard]] virtual Task<void> until_peer_leaves() = 0;

 protected:
  ~Connection() = default;
};

class Handler {
 public:
  virtual ~Handler() = default;
  [[nodiscard]] virtual Task<void> handle_request(const Request& request, Response& response,
                                                  Connection& connection) = 0;
};

}  // namespace weft::inline v0::http
