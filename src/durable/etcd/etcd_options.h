// SPDX-License-Identifier: MIT
#pragma once
// durable::EtcdOptions: which etcd, where in it, and how long to wait for it.
//
//     etcd://[user:password@]host:port[,host:port…][/prefix][?name=value[&name=value…]]          etcds:// is TLS
//
//   timeout=3s     of a call, all its attempts together: 100ms to 10m
//   ca=/path       PEM: who vouches for the members. Without it: whom the system trusts
//   cert=/path     PEM: what is shown to a member that asks who we are, and
//   key=/path      its key
//
// User, password, prefix and values may have %-escapes. A port that is not named is 2379. The prefix, "weft" if it is not named, is
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
  std::string ca_path, certificate_path, key_path;  // empty: none

  // A request that is under way when a leader dies hangs for 5 to 7 s: so ask the next member long before.
  std::chrono::milliseconds attempt_timeout{2'000};
  // Of a call of the store's, all its attempts together. Then: LockError::unreachable.
  std::chrono::milliseconds call_timeout{5'000};
  // Per member, beside the one for the watch. Further requests wait for one.
  std::uint32_t connections_max = 4;
  // None: a TcpConnector, which trusts whom the system trusts. make_etcd_store() makes one of the paths.
  std::shared_ptr<http::Connector> connector{};

  // Without the password: for messages.
  [[nodiscard]] std::string url() const;
};

// Reads the files that the options name, and makes the connector. Blocks. Errors: LockError::invalid.
[[nodiscard]] LockResult<> load_certificates(EtcdOptions& options);

// Errors: LockError::invalid.
[[nodiscard]] LockResult<EtcdOptions> parse_etcd_url(std::string_view url);

}  // namespace weft::inline v0::durable
