// SPDX-License-Identifier: MIT
#include "session_cache.h"

#include <ctime>
#include <utility>

namespace weft::inline v0::tls::detail {

namespace {

bool is_good(const SSL_SESSION& session) {
  long age = static_cast<long>(std::time(nullptr)) - SSL_SESSION_get_time(&session);
  return SSL_SESSION_is_resumable(&session) == 1 && age < SSL_SESSION_get_timeout(&session);
}

}  // namespace

void SessionCache::put(const std::string& host, OwnedSession session) {
  std::scoped_lock lock(mutex_);
  auto found = by_name_.find(host);
  if (found == by_name_.end()) {
    hosts_.push_front(Host{host, {}});
    found = by_name_.emplace(host, hosts_.begin()).first;
    if (hosts_.size() > kSessionHostsMax) {
      by_name_.erase(hosts_.back().name);
      hosts_.pop_back();
    }
  } else {
    hosts_.splice(hosts_.begin(), hosts_, found->second);
  }
  std::deque<OwnedSession>& sessions = found->second->sessions;
  sessions.push_back(std::move(session));
  if (sessions.size() > kSessionsPerHostMax) sessions.pop_front();
}

OwnedSession SessionCache::take(const std::string& host) {
  std::scoped_lock lock(mutex_);
  auto found = by_name_.find(host);
  if (found == by_name_.end()) return nullptr;
  std::deque<OwnedSession>& sessions = found->second->sessions;
  while (!sessions.empty()) {
    OwnedSession newest = std::move(sessions.back());
    sessions.pop_back();
    if (!is_good(*newest)) continue;
    if (SSL_SESSION_get_protocol_version(newest.get()) < TLS1_3_VERSION) {
      SSL_SESSION_up_ref(newest.get());
      sessions.push_back(OwnedSession(newest.get()));
    }
    return newest;
  }
  hosts_.erase(found->second);
  by_name_.erase(found);
  return nullptr;
}

std::size_t SessionCache::count() const {
  std::scoped_lock lock(mutex_);
  std::size_t sum = 0;
  for (const Host& host : hosts_) sum += host.sessions.size();
  return sum;
}

}  // namespace weft::inline v0::tls::detail
