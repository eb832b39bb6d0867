// SPDX-License-Identifier: MIT
#pragma once
// weft::net::serve(): the loop around accept() that every server has.
//
//     TcpListener listener = or_throw(TcpListener::listen(Address::loopback_v4(8080)));
//     auto echo = [](TcpStream peer) -> Task<void> { … };
//     co_await serve(listener, {.connections_max = 1000}, echo);
//
// net/serve_datagrams.h is the same for a UdpSocket, net/server.h is made of both.
//
// It accepts, and starts the handler with each connection, as a child. What a handler throws is
// logged and ends its own connection only. What accept() has to say about one connection, or about
// descriptors that have run out, is logged (once in a row) and does not end it.
//
// Ends when the listener is closed, and the last handler has ended: that is the graceful way.
// Cancelled: the handlers are cancelled too. An error that says that it is no listener (EINVAL,
// ENOTSOCK …) is thrown, as std::system_error.
//
// Threads        on the listener's loop; the handlers run there.
// Allocation     a frame or two per connection.
//
// Invariants
//   I1  never more handlers than the limit: it waits for a permit before it accepts (N5).
#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <system_error>
#include <utility>

#include "weft/core/nursery.h"
#include "weft/core/task.h"
#include "weft/net/tcp.h"
#include "weft/sync/semaphore.h"

namespace weft::inline v0::net {

struct ServeLimits {
  // Open at once; who comes then waits in the kernel's backlog. (On io_uring up to 64 of those are
  // accepted ahead, and wait here.) Not 0
  std::size_t connections_max = 10'000;
};

// A worker's part of a limit that is for all of them. Rounded down, so that together they stay within it; but each has 1, or a
// worker would not serve whom the kernel gave to it. No limit, and 0, are the same for each.
[[nodiscard]] constexpr std::size_t share_of(std::size_t limit, std::size_t workers) noexcept {
  if (limit == 0 || limit == std::numeric_limits<std::size_t>::max()) return limit;
  return std::max<std::size_t>(1, limit / workers);
}

namespace detail {

// What waits, is cancelled and is joined has a frame.
template <class Handler, class... Args>
constexpr void check_handler() {
  static_assert(
      weft::detail::ReturnsAwaitable<Handler&, Args...>,
      "weft: a handler is a coroutine: called with what it is to handle, it returns a Task. A "
      "plain function or lambda has no frame that could wait, be cancelled or be joined: give it "
      "`-> Task<void>` and co_await or co_return in it");
}

// No limit that a Semaphore can count to is reached by descriptors.
[[nodiscard]] constexpr Semaphore::Count permits_for(std::size_t limit) noexcept {
  return static_cast<Semaphore::Count>(
      std::min<std::size_t>(limit, std::numeric_limits<Semaphore::Count>::max()));
}

void log_handler_error(std::exception_ptr error) noexcept;

// What a socket that serves has to say, without repeating it.
class Complaints {
 public:
  explicit Complaints(const char* whose) noexcept : whose_(whose) {}
  // Returns: true if it is the same as the last.
  bool log(std::error_code error) noexcept;
  void forget() noexcept { last_ = {}; }

 private:
  const char* whose_;
  std::error_code last_;
};

// Whether it is not about one connection, or a shortage that passes, but would be said again and
// again.
[[nodiscard]] bool is_lasting(std::error_code error) noexcept;

template <class Handler, class... Args>
Task<void> handle(Handler& handler, SemaphorePermit, Args... args) {
  std::exception_ptr error;
  try {
    co_await handler(std::move(args)...);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) log_handler_error(std::move(error));
}

}  // namespace detail

// Requires: `listener` and `handler` live until it has ended.
template <class Listener, class Handler>
Task<void> serve(Listener& listener, ServeLimits limits, Handler& handler) {
  using Connection = typename AwaitResult<decltype(listener.accept())>::value_type;
  detail::check_handler<Handler, Connection>();
  Semaphore permits(detail::permits_for(limits.connections_max), "connections");
  auto accept_all = [&](Nursery& connections) -> Task<NurseryEnd> {
    detail::Complaints complaints("net::serve(): accept()");
    while (true) {
      SemaphorePermit permit = co_await permits.acquire();
      if (!listener) co_return join;  // closed while all permits were out
      auto accepted = co_await listener.accept();
      if (accepted) {
        complaints.forget();
        connections.start(detail::handle(handler, std::move(permit), std::move(*accepted)));
      } else if (accepted.error() == std::errc::bad_file_descriptor) {
        co_return join;
      } else if (detail::is_lasting(accepted.error())) {
        throw std::system_error(accepted.error(), "net::serve(): this is no listener");
      } else {
        complaints.log(accepted.error());
      }
    }
  };
  co_await with_nursery(accept_all);
}

}  // namespace weft::inline v0::net
