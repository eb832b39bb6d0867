// SPDX-License-Identifier: MIT
#include "weft/net/socket.h"

#include "system.h"
#include "weft/core/errors.h"

namespace weft::inline v0::net {

void Socket::move_to(EventLoop& loop) {
  descriptor_.leave_loop();
  destination_ = &loop;
}

void Socket::arrive() {
  if (EventLoop::current_or_null() != destination_) {
    weft::detail::throw_usage_error("this socket was moved to another loop: use it there");
  }
  destination_ = nullptr;
}

Result<void> StreamSocket::shutdown(int how) noexcept {
  return detail::success_of(::shutdown(number(), how));
}

}  // namespace weft::inline v0::net
