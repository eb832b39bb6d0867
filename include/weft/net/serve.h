// SPDX-License-Identifier: MIT
#pragma once
// weft::net::serve(): the loop around accept() that every server has.
//
//     TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(8080)));
//     auto echo = [](TcpStream peer) -> Task<void> { … };
//     co_await serve(listener, {.connections_max = 1000}, echo);
//
// It accepts, and starts the handler with each connection, as a child. What a handler throws is logged and ends its
// own connection only. What accept() has to say about one connection, or about descriptors that have run out, is logged
// (once in a row) and does not end it.
//
// Ends when the listener is closed, and the last handler has ended: that is the graceful way. Cancelled: the handlers are
// cancelled too.
//
// Threads        on the listener's loop; the handlers run there.
// Allocation     a frame or two per connection.
//
// Invariants
//   I1  never more than connections_max handlers: it waits for a permit before it accepts (N5).
#include <cstddef>
#include <exception>
#include <system_error>
#include <utility>

#include "weft/core/nursery.h"
#include "weft/core/task.h"
#include "weft/net/tcp.h"
#include "weft/sync/semaphore.h"

namespace weft::inline v0::net {

struct ServeLimits {
  std::size_t connections_max =
      10'000;  // open at once; who comes then waits in the kernel's backlog
};

namespace detail {

void log_handler_error(std::exception_ptr error) noexcept;

// Accept's complaints, without repeating them.
class AcceptComplaints {
 public:
  void log(std::error_code error) noexcept;
  void forget() noexcept { last_ = {}; }

 private:
  std::error_code last_;
};

template <class Handler, class Connection>
Task<void> handle(Handler& handler, Connection connection, SemaphorePermit) {
  std::exception_ptr error;
  try {
    co_await handler(std::move(connection));
  } catch (...) {
    error = std::current_exception();
  }
  if (error) log_handler_error(std::move(error));
}

}  // namespace detail

// Requires: `listener` and `handler` live until it has ended.
template <class Listener, class Handler>
Task<void> serve(Listener& listener, ServeLimits limits, Handler& handler) {
  Semaphore permits(limits.connections_max);
  auto accept_all = [&](Nursery& connections) -> Task<NurseryEnd> {
    detail::AcceptComplaints complaints;
    while (true) {
      SemaphorePermit permit = co_await permits.acquire();
      auto accepted = co_await listener.accept();
      if (!accepted && accepted.error() == std::errc::bad_file_descriptor) co_return join;
      if (!accepted) {
        complaints.log(accepted.error());
        continue;
      }
      complaints.forget();
      connections.start(detail::handle(handler, std::move(*accepted), std::move(permit)));
    }
  };
  co_await with_nursery(accept_all);
}

}  // namespace weft::inline v0::net
