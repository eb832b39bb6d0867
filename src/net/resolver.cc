// SPDX-License-Identifier: MIT
#include "weft/net/resolver.h"

#include <ares.h>

#include <algorithm>
#include <array>
#include <new>
#include <system_error>
#include <utility>

#include "weft/core/combinators.h"
#include "weft/io/descriptor.h"
#include "weft/net/error.h"
#include "weft/time/sleep.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::net {

namespace {

int native(Family family) {
  switch (family) {
    case Family::v4:
      return AF_INET;
    case Family::v6:
      return AF_INET6;
    case Family::any:
      break;
  }
  return AF_UNSPEC;
}

std::error_code error_of(int status) {
  switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
      return Error::host_not_found;
    case ARES_EBADNAME:
      return Error::bad_host_name;
    case ARES_ETIMEOUT:
      return Error::resolver_silent;
    case ARES_ENOMEM:
      return std::make_error_code(std::errc::not_enough_memory);
    default:  // ARES_ECONNREFUSED too: c-ares says so also of servers that failed in another way
      return Error::resolver_failed;
  }
}

// What c-ares wants to hear of a socket of its.
struct Watched {
  ares_socket_t socket = ARES_SOCKET_BAD;
  bool can_read = false;
  bool can_write = false;
};
Task<void> watch_read(Watched& watched) {
  (void)co_await readable(watched.socket);
  watched.can_read = true;
}
Task<void> watch_write(Watched& watched) {
  (void)co_await writable(watched.socket);
  watched.can_write = true;
}
Task<void> pass(std::chrono::microseconds time) { co_await sleep_for(time); }

// One question, with a channel of its own.
//
// Invariants
//   I1  between two calls of c-ares nobody waits on its sockets: it may close them in any call.
class Question {
 public:
  Question() = default;
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  // c-ares calls answered() once more, if it has not yet.
  ~Question() {
    if (channel_) ::ares_destroy(channel_);
  }

  // Returns: a status of c-ares.
  int open(const ResolveOptions& options) {
    ares_options native{};
    native.timeout = static_cast<int>(std::max<std::int64_t>(options.attempt_timeout.count(), 1));
    native.tries = std::max(options.rounds, 1);
    native.flags = options.search_domains ? 0 : ARES_FLAG_NOSEARCH;
    int status = ::ares_init_options(&channel_, &native,
                                     ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
    if (status != ARES_SUCCESS || options.servers.empty()) return status;
    std::string servers;
    for (const Address& each : options.servers) servers += each.to_string() + ',';
    servers.pop_back();
    return ::ares_set_servers_ports_csv(channel_, servers.c_str());
  }

  // It may be answered at once.
  void ask(const std::string& host, Family family, std::uint16_t port) {
    port_ = port;
    ares_addrinfo_hints hints{};
    hints.ai_family = native(family);
    hints.ai_socktype = SOCK_STREAM;  // or every address would come once for each kind
    hints.ai_flags = ARES_AI_ENVHOSTS;
    ::ares_getaddrinfo(channel_, host.c_str(), nullptr, &hints, &answered, this);
  }

  [[nodiscard]] bool is_answered() const { return status_ != kOpen; }
  // Requires: is_answered().
  [[nodiscard]] Result<std::vector<Address>> answer() {
    if (status_ != ARES_SUCCESS) return std::unexpected(error_of(status_));
    if (addresses_.empty()) return std::unexpected(make_error_code(Error::host_not_found));
    return std::move(addresses_);
  }

  // Waits until there is something to do for c-ares, and has it done.
  Task<void> go_on() {
    std::array<Watched, ARES_GETSOCK_MAXNUM> watched;
    {
      std::vector<Task<void>> waits = waits_on(watched);
      co_await any_of(std::move(waits));
    }
    bool any = false;
    for (const Watched& each : watched) {
      if (!each.can_read && !each.can_write) continue;
      any = true;
      ::ares_process_fd(channel_, each.can_read ? each.socket : ARES_SOCKET_BAD,
                        each.can_write ? each.socket : ARES_SOCKET_BAD);
    }
    if (!any) ::ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // what is overdue
  }

 private:
  static constexpr int kOpen = -1;

  std::vector<Task<void>> waits_on(std::span<Watched> watched) {
    std::array<ares_socket_t, ARES_GETSOCK_MAXNUM> sockets{};
    int bits = ::ares_getsock(channel_, sockets.data(), static_cast<int>(sockets.size()));
    std::vector<Task<void>> waits;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      watched[i].socket = sockets[i];
      if (ARES_GETSOCK_READABLE(bits, i)) waits.push_back(watch_read(watched[i]));
      if (ARES_GETSOCK_WRITABLE(bits, i)) waits.push_back(watch_write(watched[i]));
    }
    timeval left{};
    timeval most{.tv_sec = 1, .tv_usec = 0};
    timeval* next = ::ares_timeout(channel_, &most, &left);
    waits.push_back(
        pass(std::chrono::seconds(next->tv_sec) + std::chrono::microseconds(next->tv_usec)));
    return waits;
  }

  static void answered(void* self, int status, int, ares_addrinfo* found) noexcept {
    auto& question = *static_cast<Question*>(self);
    question.status_ = status;
    if (!found) return;
    try {
      question.take(*found);
    } catch (const std::bad_alloc&) {
      question.status_ = ARES_ENOMEM;
    }
    ::ares_freeaddrinfo(found);
  }

  void take(const ares_addrinfo& found) {
    for (const ares_addrinfo_node* node = found.nodes; node; node = node->ai_next) {
      if (addresses_.size() == kAddressesMax) return;
      Result<Address> address = Address::from(*node->ai_addr, node->ai_addrlen);
      if (!address) continue;
      Address whole = address->with_port(port_);
      if (std::ranges::find(addresses_, whole) == addresses_.end()) addresses_.push_back(whole);
    }
  }

  std::vector<Address> addresses_;
  int status_ = kOpen;
  std::uint16_t port_ = 0;
  ares_channel channel_ = nullptr;
};

Task<Result<std::vector<Address>>> ask(std::string host, std::uint16_t port,
                                       const ResolveOptions& options) {
  Question question;
  if (int status = question.open(options); status != ARES_SUCCESS) {
    co_return std::unexpected(error_of(status));
  }
  question.ask(host, options.family, port);
  while (!question.is_answered()) co_await question.go_on();
  co_return question.answer();
}

// RFC 6761, 6.3: it and all names below it are this machine, and no name server is asked.
bool is_localhost(std::string host) {
  if (host.ends_with('.')) host.pop_back();
  for (char& c : host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return host == "localhost" || host.ends_with(".localhost");
}

}  // namespace

Task<Result<std::vector<Address>>> resolve(std::string host, std::uint16_t port,
                                           ResolveOptions options) {
  if (host.empty() || host.contains('\0')) {
    co_return std::unexpected(make_error_code(Error::bad_host_name));
  }
  std::vector<Address> known;
  if (Result<Address> numeric = Address::parse_host(host, port)) {
    known.push_back(*numeric);
  } else if (is_localhost(host)) {
    known = {Address::loopback_v6(port), Address::loopback_v4(port)};
  }
  if (!known.empty()) {
    std::erase_if(known, [&options](const Address& address) {
      return options.family != Family::any && address.family() != native(options.family);
    });
    if (known.empty()) co_return std::unexpected(make_error_code(Error::host_not_found));
    co_return known;
  }
  co_return co_await within(options.timeout, ask(std::move(host), port, options));
}

Task<Result<std::vector<Address>>> resolve(std::string host, std::uint16_t port) {
  return resolve(std::move(host), port, ResolveOptions());
}

}  // namespace weft::inline v0::net
