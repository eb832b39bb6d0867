// SPDX-License-Identifier: MIT
#include "weft/net/tcp.h"

#include <netinet/tcp.h>

#include "system.h"

namespace weft::inline v0::net {

namespace {

// After keepalive's first question.
constexpr int kKeepaliveIntervalSeconds = 30;
constexpr int kKeepaliveQuestions = 6;

Result<void> set(int socket, int level, int name, int value) noexcept {
  return detail::success_of(::setsockopt(socket, level, name, &value, sizeof value));
}

Result<void> apply_nodelay(int socket, bool on) noexcept {
  return set(socket, IPPROTO_TCP, TCP_NODELAY, on);
}

Result<void> apply_keepalive(int socket, std::optional<std::chrono::seconds> idle) noexcept {
  Result<void> done = set(socket, SOL_SOCKET, SO_KEEPALIVE, idle.has_value());
  if (done && idle) done = set(socket, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(idle->count()));
  if (done && idle) done = set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveIntervalSeconds);
  if (done && idle) done = set(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveQuestions);
  return done;
}

Result<void> apply_reset_on_close(int socket, bool on) noexcept {
  linger value{.l_onoff = on, .l_linger = 0};
  return detail::success_of(::setsockopt(socket, SOL_SOCKET, SO_LINGER, &value, sizeof value));
}

Result<void> apply(int socket, const TcpOptions& options) noexcept {
  Result<void> done = apply_nodelay(socket, options.nodelay);
  if (done && options.keepalive) done = apply_keepalive(socket, options.keepalive);
  if (done && options.reset_on_close) done = apply_reset_on_close(socket, true);
  return done;
}

Result<UniqueFd> make_socket(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) return detail::last_error();
  return fd;
}

}  // namespace

Task<Result<TcpStream>> TcpStream::connect(Address where, TcpOptions options) {
  Result<UniqueFd> fd = make_socket(where.family());
  if (!fd) co_return std::unexpected(fd.error());
  if (Result<void> done = apply(fd->get(), options); !done) co_return std::unexpected(done.error());
  Descriptor socket(std::move(*fd));
  co_await ok(socket.connect(where.native(), where.native_size()));
  co_return TcpStream(std::move(socket));
}

Result<Address> TcpStream::local_address() const noexcept {
  return detail::ask_address(::getsockname, number());
}
Result<Address> TcpStream::peer_address() const noexcept {
  return detail::ask_address(::getpeername, number());
}
Result<void> TcpStream::set_nodelay(bool on) noexcept { return apply_nodelay(number(), on); }
Result<void> TcpStream::set_keepalive(std::optional<std::chrono::seconds> idle) noexcept {
  return apply_keepalive(number(), idle);
}
Result<void> TcpStream::set_reset_on_close(bool on) noexcept {
  return apply_reset_on_close(number(), on);
}

Result<TcpListener> TcpListener::listen(Address where, ListenOptions options) {
  Result<UniqueFd> fd = make_socket(where.family());
  if (!fd) return std::unexpected(fd.error());
  int socket = fd->get();
  // An address whose last connections are still being wound up is free all the same.
  Result<void> done = set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (done && options.reuse_port) done = set(socket, SOL_SOCKET, SO_REUSEPORT, 1);
  if (done && where.is_v6()) done = set(socket, IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only);
  // Linux hands these on to whom it accepts: no system call per connection.
  if (done) done = apply(socket, options.connections);
  if (done) done = detail::success_of(::bind(socket, &where.native(), where.native_size()));
  if (done) done = detail::success_of(::listen(socket, options.backlog));
  if (!done) return std::unexpected(done.error());
  return TcpListener(Descriptor(std::move(*fd)));
}

Task<Result<TcpStream>> TcpListener::accept() {
  Descriptor accepted = co_await ok(descriptor_.accept());
  co_return TcpStream(std::move(accepted));
}

Result<Address> TcpListener::local_address() const noexcept {
  return detail::ask_address(::getsockname, descriptor_.number());
}

}  // namespace weft::inline v0::net
