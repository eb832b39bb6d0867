// SPDX-License-Identifier: MIT
#pragma once
// The sessions that a client may resume, by host.
//
// Threads        any.
// Allocation     an entry per host, up to kSessionHostsMax; the host that was heard of longest ago goes first.
#include <cstddef>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "openssl.h"
#include "weft/tls/context.h"

namespace weft::inline v0::tls::detail {

class SessionCache {
 public:
  void put(const std::string& host, OwnedSession session);
  // The newest that is still good, or null. One of TLS 1.3 is used once, and leaves; one of TLS 1.2 stays.
  [[nodiscard]] OwnedSession take(const std::string& host);
  [[nodiscard]] std::size_t count() const;

 private:
  struct Host {
    std::string name;
    std::deque<OwnedSession> sessions;  // the newest last; kSessionsPerHostMax
  };
  using Hosts = std::list<Host>;

  mutable std::mutex mutex_;
  Hosts hosts_;  // the one that was last heard of first
  std::unordered_map<std::string, Hosts::iterator> by_name_;
};

}  // namespace weft::inline v0::tls::detail
