// SPDX-License-Identifier: MIT
#pragma once
// weft::bench::ClosedLoop: a load of several connections, each with one message in flight: the next is sent when the reply to the
// last has come.
//
// A reply is so many bytes. Where they are known beforehand they are compared, every one of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft::bench {

// A blocking socket, connected to a port of the loopback, with TCP_NODELAY. Throws: std::system_error.
[[nodiscard]] int connect_to_loopback(std::uint16_t port);

// Both block. Throw: std::runtime_error if the server closes or does not answer, std::system_error.
void send_all(int socket, const std::string& bytes);
void receive_some(int socket, std::string& bytes);

struct Talk {
  std::string message;
  std::size_t reply_bytes;
  std::string reply = {};  // empty: whatever comes
};

class ClosedLoop {
 public:
  ClosedLoop();
  ClosedLoop(const ClosedLoop&) = delete;
  ClosedLoop& operator=(const ClosedLoop&) = delete;
  ~ClosedLoop();

  // Takes over a connected socket, on which nothing is to be read.
  void add(int socket, Talk talk);
  // Returns: the messages that were answered, at least n, and as many on each connection.
  // Throws: std::runtime_error if a reply is wrong or does not come.
  double exchange(std::size_t n);

 private:
  class Connection;

  int epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace weft::bench
