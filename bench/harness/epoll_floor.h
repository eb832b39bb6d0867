// SPDX-License-Identifier: MIT
#pragma once
// weft::bench: the floor of a server on epoll: one thread, a loop around epoll_wait, edge-triggered.
//
// Two system calls per message, recv and send, and one epoll_wait for as many as are ready. A short
// read has emptied the socket, so there is no second one. A reply that the socket does not take at
// once ends the program: short ones always fit. Level-triggered, and with read and write, it is
// slower than tokio.
//
// `reply` is called with what has come, and returns what is to be sent: a std::string_view, good
// until its next call.

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string_view>

#include "harness/loopback.h"

namespace weft::bench {

template <class Reply>
class EpollFloor {
 public:
  explicit EpollFloor(Reply reply) : reply_(reply) { watch(listener_); }

  [[noreturn]] void serve_forever() {
    announce(port_of(listener_));
    std::array<epoll_event, kEventsMax> events;
    for (;;) {
      const int ready = epoll_wait(epoll_, events.data(), kEventsMax, -1);
      for (int i = 0; i < ready; ++i) {
        if (events[i].data.fd == listener_)
          accept_all();
        else
          answer(events[i].data.fd);
      }
    }
  }

 private:
  static constexpr int kEventsMax = 64;

  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    event.data.fd = fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) throw std::runtime_error("epoll_ctl");
  }

  void accept_all() {
    for (;;) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket < 0) return;
      set_no_delay(socket);
      watch(socket);
    }
  }

  void answer(int socket) {
    std::array<char, kReadBufferBytes> buffer;
    for (;;) {
      const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        close(socket);
        return;
      }
      const auto bytes = static_cast<std::size_t>(got);
      const std::string_view reply = reply_(std::string_view(buffer.data(), bytes));
      const ssize_t sent = send(socket, reply.data(), reply.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        close(socket);
        return;
      }
      if (static_cast<std::size_t>(sent) != reply.size())
        throw std::runtime_error("a reply did not fit");
      if (bytes < buffer.size()) return;
    }
  }

  Reply reply_;
  int listener_ = listen_on_loopback();
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
};

}  // namespace weft::bench
