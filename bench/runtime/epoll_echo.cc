// SPDX-License-Identifier: MIT
// The floor of echo on epoll: one thread, a loop around epoll_wait, edge-triggered.
//
// Two system calls per message, recv and send, and one epoll_wait for as many as are ready. A short
// read has emptied the socket, so there is no second one. A reply that the socket does not take at
// once ends the program: 64 bytes always fit. Level-triggered, and with read and write, it is slower
// than tokio.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "runtime/echo_socket.h"

namespace weft::bench {
namespace {

constexpr int kEventsMax = 64;

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) throw std::runtime_error("epoll_ctl");
}

void accept_all(int epoll, int listener) {
  for (;;) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    set_no_delay(socket);
    watch(epoll, socket);
  }
}

void echo(int socket) {
  std::array<char, kEchoBufferBytes> buffer;
  for (;;) {
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(socket);
      return;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (send(socket, buffer.data(), bytes, MSG_NOSIGNAL) != got)
      throw std::runtime_error("a reply did not fit");
    if (bytes < buffer.size()) return;
  }
}

void serve_forever() {
  const int listener = listen_on_loopback();
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, listener);
  announce(port_of(listener));
  std::array<epoll_event, kEventsMax> events;
  for (;;) {
    const int ready = epoll_wait(epoll, events.data(), kEventsMax, -1);
    for (int i = 0; i < ready; ++i) {
      if (events[i].data.fd == listener)
        accept_all(epoll, listener);
      else
        echo(events[i].data.fd);
    }
  }
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  if (weft::bench::answered_info(argc, argv,
                                 "raw epoll loop, edge-triggered; clang " __clang_version__))
    return 0;
  try {
    weft::bench::serve_forever();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "epoll_echo: %s\n", e.what());
    return 1;
  }
}
