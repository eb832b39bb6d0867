// SPDX-License-Identifier: MIT
#pragma once
// An address of this machine that answers no attempt to connect, like a host behind a wall: a
// listener whose backlog is full. Linux drops who comes then, without a word.
#include <fcntl.h>
#include <poll.h>

#include <vector>

#include "driver_fixture.h"
#include "weft/net/address.h"

namespace weft::test {

class DeadEnd {
 public:
  explicit DeadEnd(net::Address at) : listener_(make(at)) {
    checked(::bind(listener_.get(), &at.native(), at.native_size()), "bind");
    checked(::listen(listener_.get(), 0), "listen");
    sockaddr_storage storage;
    socklen_t size = sizeof storage;
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    checked(::getsockname(listener_.get(), address, &size), "getsockname");
    where_ = or_throw(net::Address::from(*address, size));
    // Until one is not answered.
    for (bool answered = true; answered;) {
      UniqueFd fd = make(where_);
      ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
      ::connect(fd.get(), &where_.native(), where_.native_size());
      pollfd asked{fd.get(), POLLOUT, 0};
      answered = ::poll(&asked, 1, 20) > 0;
      queue_.push_back(std::move(fd));
    }
  }
  [[nodiscard]] const net::Address& where() const { return where_; }

 private:
  static UniqueFd make(const net::Address& at) {
    return UniqueFd(checked(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  }

  UniqueFd listener_;
  net::Address where_;
  std::vector<UniqueFd> queue_;
};

}  // namespace weft::test
