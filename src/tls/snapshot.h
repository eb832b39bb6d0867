// SPDX-License-Identifier: MIT
#pragma once
// A context as one connection sees it, and the cell from which the next connection gets the newest.
//
// Threads        a Snapshot does not change once it is made; what OpenSSL changes in an SSL_CTX, it locks.
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "openssl.h"
#include "session_cache.h"
#include "weft/base/result.h"
#include "weft/tls/context.h"

namespace weft::inline v0::tls::detail {

// OpenSSL's callbacks know it by address; an Engine keeps it alive.
class Snapshot {
 public:
  OwnedContext context;
  std::string alpn;                        // on the wire: a length before each
  std::shared_ptr<SessionCache> sessions;  // a client's that resumes, or null
  bool verifies = true;
};

class ContextCell {
 public:
  ContextCell(ClientOptions options) : options_(std::move(options)) {}
  ContextCell(ServerOptions options) : options_(std::move(options)) {}

  // Builds a Snapshot of the options with this identity, and puts it in place of the last.
  Result<void> renew(std::optional<Identity> identity);
  [[nodiscard]] std::shared_ptr<const Snapshot> now() const {
    std::scoped_lock lock(mutex_);
    return snapshot_;
  }
  [[nodiscard]] std::chrono::nanoseconds handshake_timeout() const noexcept {
    return std::visit([](const auto& options) { return options.handshake_timeout; }, options_);
  }
  [[nodiscard]] std::size_t session_count() const {
    std::shared_ptr<const Snapshot> snapshot = now();
    return snapshot->sessions ? snapshot->sessions->count() : 0;
  }

 private:
  Result<std::shared_ptr<const Snapshot>> build(const std::optional<Identity>& identity);
  Result<void> set_up(SSL_CTX& context, Snapshot& snapshot, const ClientOptions& options);
  Result<void> set_up(SSL_CTX& context, Snapshot& snapshot, const ServerOptions& options);
  // So that tickets of the last one are good for this one too.
  void keep_ticket_keys(SSL_CTX& context);

  const std::variant<ClientOptions, ServerOptions> options_;
  mutable std::mutex mutex_;
  std::mutex renewing_;  // one renew() at a time
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace weft::inline v0::tls::detail
