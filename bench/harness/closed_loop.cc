// SPDX-License-Identifier: MIT
#include "harness/closed_loop.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "harness/loopback.h"

namespace weft::bench {
namespace {

constexpr int kReplySecondsMax = 5;
constexpr int kEventsMax = 64;

int checked(ssize_t result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return static_cast<int>(result);
}

}  // namespace

int connect_to_loopback(std::uint16_t port) {
  const int connected = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  checked(connect(connected, reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "connect");
  set_no_delay(connected);
  const timeval patience{.tv_sec = kReplySecondsMax, .tv_usec = 0};
  checked(setsockopt(connected, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), "setsockopt");
  return connected;
}

void send_all(int socket, const std::string& bytes) {
  if (checked(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), "send") !=
      static_cast<int>(bytes.size()))
    throw std::runtime_error("a message did not fit into the socket's buffer");
}

void receive_some(int socket, std::string& bytes) {
  std::array<char, 4096> piece;
  const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
  if (got < 0 && errno == EAGAIN) throw std::runtime_error("the server does not answer");
  if (checked(got, "recv") == 0) throw std::runtime_error("the server closed a connection");
  bytes.append(piece.data(), static_cast<std::size_t>(got));
}

class ClosedLoop::Connection {
 public:
  Connection(int socket, Talk talk)
      : socket_(socket), talk_(std::move(talk)), reply_(talk_.reply_bytes, '\0') {
    checked(fcntl(socket_, F_SETFL, O_NONBLOCK), "fcntl");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(socket_); }

  void ask(std::size_t messages) {
    left_ = messages;
    next();
  }
  // Returns: true when the last reply of ask() has come.
  bool receive() {
    const ssize_t got = read(socket_, reply_.data() + received_, reply_.size() - received_);
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) throw std::runtime_error("the server closed a connection");
    received_ += static_cast<std::size_t>(got);
    if (received_ < reply_.size()) return false;
    if (!talk_.reply.empty() && reply_ != talk_.reply)
      throw std::runtime_error("a reply is not what it should be");
    if (--left_ == 0) return true;
    next();
    return false;
  }

 private:
  void next() {
    received_ = 0;
    // At most one message is under way: the socket's buffer always has room for it.
    send_all(socket_, talk_.message);
  }

  int socket_;
  Talk talk_;
  std::string reply_;
  std::size_t left_ = 0;
  std::size_t received_ = 0;
};

ClosedLoop::ClosedLoop() : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {}

ClosedLoop::~ClosedLoop() { close(epoll_); }

void ClosedLoop::add(int socket, Talk talk) {
  connections_.push_back(std::make_unique<Connection>(socket, std::move(talk)));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = connections_.back().get();
  checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event), "epoll_ctl");
}

double ClosedLoop::exchange(std::size_t n) {
  const std::size_t each = (n + connections_.size() - 1) / connections_.size();
  for (auto& connection : connections_) connection->ask(each);
  std::array<epoll_event, kEventsMax> events;
  for (std::size_t open = connections_.size(); open > 0;) {
    const int ready = epoll_wait(epoll_, events.data(), kEventsMax, kReplySecondsMax * 1000);
    if (ready == 0) throw std::runtime_error("the server does not answer");
    if (ready < 0 && errno != EINTR) checked(ready, "epoll_wait");
    for (int i = 0; i < ready; ++i)
      if (static_cast<Connection*>(events[i].data.ptr)->receive()) --open;
  }
  return static_cast<double>(each * connections_.size());
}

}  // namespace weft::bench
