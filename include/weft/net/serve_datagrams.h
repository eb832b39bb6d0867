// SPDX-License-Identifier: MIT
#pragma once
// weft::net::serve_datagrams(): the loop around receive_from() that a server over UDP has.
//
//     auto echo = [](const Datagram& datagram, DatagramSender& sender) -> Task<void> {
//       (void)co_await sender.send_to(datagram.bytes, datagram.peer);
//     };
//     co_await serve_datagrams(socket, {.handlers_max = 100}, echo);
//
// Each datagram has a handler of its own, as a child; they answer through a DatagramSender, because
// a socket has one writer at a time. What a handler throws is logged and ends that handler only.
//
// Ends when the socket is closed, or `stop` is set, and the last handler has ended. Cancelled: the
// handlers are cancelled too.
//
// Threads        on the socket's loop; the handlers run there.
// Allocation     a frame or two and a buffer per datagram.
//
// Invariants
//   I1  never more than handlers_max handlers: while they all run, what comes waits in the kernel's
//       queue, and beyond that is lost, as UDP has it.
#include <cstddef>
#include <exception>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/combinators.h"
#include "weft/core/nursery.h"
#include "weft/core/task.h"
#include "weft/net/serve.h"
#include "weft/net/udp.h"
#include "weft/sync/event.h"
#include "weft/sync/local_mutex.h"
#include "weft/sync/semaphore.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::net {

struct DatagramLimits {
  std::size_t handlers_max = 256;  // at once. Not 0
  std::size_t bytes_max = 2048;    // of one; what is larger is cut off, and says so. Not 0
};

// Sends on a socket that many use, in the order in which they asked.
class DatagramSender {
 public:
  explicit DatagramSender(UdpSocket& socket) noexcept : socket_(socket) {}

  // As UdpSocket::send_to(). bad_file_descriptor: the socket was closed.
  [[nodiscard]] Task<Result<void>> send_to(std::span<const std::byte> bytes, Address to);

 private:
  UdpSocket& socket_;
  LocalMutex one_writer_;
};

namespace detail {

template <class Handler>
Task<void> handle_datagram(Handler& handler, SemaphorePermit,
                           [[maybe_unused]] std::vector<std::byte> buffer, Datagram datagram,
                           DatagramSender& sender) {
  std::exception_ptr error;
  try {
    co_await handler(std::as_const(datagram), sender);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) log_handler_error(std::move(error));
}

}  // namespace detail

// Until `stop` is set, too: nothing more is received then, but the handlers that run can answer.
// Requires: all of them live until it has ended.
template <class Handler>
Task<void> serve_datagrams(UdpSocket& socket, DatagramLimits limits, Handler& handler,
                           Event& stop) {
  detail::check_handler<Handler, const Datagram&, DatagramSender&>();
  Semaphore permits(detail::permits_for(limits.handlers_max), "datagram handlers");
  DatagramSender sender(socket);
  auto receive_all = [&](Nursery& handlers) -> Task<NurseryEnd> {
    detail::Complaints complaints("net::serve_datagrams(): receive_from()");
    std::vector<std::byte> buffer;
    while (true) {
      SemaphorePermit permit = co_await permits.acquire();
      // While all permits were out, or somebody kept it busy.
      if (!socket || stop.is_set()) co_return join;
      buffer.resize(limits.bytes_max);
      auto [got, stopped] = co_await any_of(socket.receive_from(buffer), stop.wait());
      if (!got) co_return join;
      if (*got) {
        complaints.forget();
        handlers.start(detail::handle_datagram(handler, std::move(permit),
                                               std::exchange(buffer, {}), **got, sender));
      } else if (got->error() == std::errc::bad_file_descriptor) {
        co_return join;
      } else if (complaints.log(got->error())) {
        co_await sleep_for(Descriptor::kAcceptPause);  // not to be asked again at once
      }
    }
  };
  co_await with_nursery(receive_all);
}
template <class Handler>
Task<void> serve_datagrams(UdpSocket& socket, DatagramLimits limits, Handler& handler) {
  Event never;
  co_await serve_datagrams(socket, limits, handler, never);
}

}  // namespace weft::inline v0::net
