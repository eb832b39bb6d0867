// SPDX-License-Identifier: MIT
#pragma once
// durable::EtcdOptions: which etcd, where in it, and how long to wait for it.
//
//     etcd://[user:password@]host:port[,host:port…][/prefix]          etcds:// is TLS
//
// User, password and prefix may have %-escapes. A port that is not named is 2379. The prefix, "weft" if it is not named, is
// where everything lies: stores with other prefixes do not see each other.
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/durable/lock_error.h"
#include "weft/http/connector.h"
#include "weft/http/url.h"

namespace weft::inline v0::durable {

struct EtcdOptions {
  std::vector<http::Endpoint> endpoints;
  std::string prefix = "weft";
  std::string user, password;

  // A request that is under way when a leader dies hangs for 5 to 7 s: so ask the next member long before.
  std::chrono::milliseconds attempt_timeout{2'000};
  // Of a call of the store's, all its attempts together. Then: LockError::unreachable.
  std::chrono::milliseconds call_timeout{5'000};
  // Per member, beside the one for the watch. Further requests wait for one.
  std::uint32_t connections_max = 4;
  // None: a TcpConnector, which trusts whom the system trusts.
  std::shared_ptr<http::Connector> connector{};

  // Without the password: for messages.
  [[nodiscard]] std::string url() const;
};

// Errors: LockError::invalid.
[[nodiscard]] LockResult<EtcdOptions> parse_etcd_url(std::string_view url);

}  // namespace weft::inline v0::durable
