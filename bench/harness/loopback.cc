// SPDX-License-Identifier: MIT
#include "harness/loopback.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace weft::bench {
namespace {

constexpr int kBacklog = 256;

void check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

int listen_on_loopback() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  check(listener, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  check(listen(listener, kBacklog), "listen");
  return listener;
}

std::uint16_t port_of(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  check(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  return ntohs(address.sin_port);
}

bool answered_info(int argc, char** argv, const char* info) {
  if (argc < 2 || std::strcmp(argv[argc - 1], "--info") != 0) return false;
  std::puts(info);
  return true;
}

void announce(std::uint16_t port) {
  std::printf("%u\n", static_cast<unsigned>(port));
  std::fflush(stdout);
}

void set_no_delay(int socket) {
  const int on = 1;
  check(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
}

}  // namespace weft::bench
