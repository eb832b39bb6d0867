// SPDX-License-Identifier: MIT
#pragma once
// weft::http::serve_events, EventStream: server-sent events, as a browser's EventSource reads them (HTML, 9.2).
//
//     Task<void> prices(const Request& request, Response& response, Connection& connection) {
//       auto send_all = [&](EventStream& events) -> Task<void> {
//         while (true) {
//           EventMessage price{.event = "price", .data = co_await next_price()};
//           Result<void> sent = co_await events.send(price);
//           if (!sent) co_return;
//         }
//       };
//       co_await serve_events(request, response, connection, send_all);
//     }
//
// The body, here `send_all`, may run for ever: it is cancelled as soon as nobody needs it any more, that is when
//
//   the peer leaves      seen at once if it closes or resets its connection, also while nothing is sent. A peer that has vanished,
//                        or does not read, is seen by Limits::write_timeout: send() waits while it does not read
//   the server stops     so that an endless answer does not hold up the drain. The answer ends as it should, and the browser
//                        comes again, to whoever serves then
//
// While nothing is sent, a comment leaves every `keep_alive`: whatever is between takes the connection for dead otherwise.
//
// Threads        the connection's loop. Several tasks of the body may send(): each event leaves whole.
// Cancellation   serve_events() and send() are cancel points. A cancelled send() of up to 16 KiB has sent its event or nothing; of
//                more, the answer is broken off.
// Errors         what the body throws passes through. A failed send() in it, thrown by or_throw(), does not: the peer has gone.
// Allocation     a few frames; a string per event.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/invoked.h"
#include "weft/core/nursery.h"
#include "weft/core/task.h"
#include "weft/http/handler.h"
#include "weft/time/interval.h"

namespace weft::inline v0::http {

// UTF-8. On g++ 12 name it before a co_await expression.
struct EventMessage {
  std::string_view event{};  // its type; empty: "message"
  std::optional<std::string_view>
      data{};  // of as many lines as it has. Nothing: no event, only what is below
  std::optional<std::string_view>
      id{};  // what the browser asks from when it comes again; empty: from nowhere
  std::optional<std::chrono::milliseconds> retry{};  // how long it waits before that
};

// As it is sent. UsageError: a line break or NUL in `event` or `id`, or `retry` is negative.
[[nodiscard]] std::string to_string(const EventMessage& message);

struct EventStreamOptions {
  std::chrono::milliseconds keep_alive{15'000};  // 0: no comments
};

enum class EventStreamEnd : std::uint8_t {
  finished,  // the body returned; of HEAD it was not called
  peer_left,
  stopping,  // the server
};

class EventStream;
namespace detail {
[[nodiscard]] Task<EventStreamEnd> serve_events(const Request& request, Response& response,
                                                Connection& connection,
                                                std::function<Task<void>(EventStream&)> body,
                                                EventStreamOptions options);
}  // namespace detail

class EventStream {
 public:
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Waits until the kernel has it. UsageError: as to_string(). Errors: as Response::write(); then the body is cancelled.
  [[nodiscard]] Task<Result<void>> send(const EventMessage& message);
  // One of type "message".
  [[nodiscard]] Task<Result<void>> send(std::string_view data);

  // The last `id` that the peer has seen, before it came again. Nothing: it comes for the first time. A view into the request.
  [[nodiscard]] std::optional<std::string_view> last_event_id() const noexcept {
    return last_event_id_;
  }

 private:
  friend Task<EventStreamEnd> detail::serve_events(const Request&, Response&, Connection&,
                                                   std::function<Task<void>(EventStream&)>,
                                                   EventStreamOptions);
  EventStream(const Request& request, Response& response, EventStreamOptions options)
      : response_(response), last_event_id_(request.headers().find("last-event-id")) {
    if (options.keep_alive.count() > 0) quiet_.emplace(options.keep_alive, MissedTicks::delay);
  }

  Task<Result<void>> write(std::string text);
  Task<void> keep_alive();
  void end(EventStreamEnd why) noexcept;

  Response& response_;
  std::optional<std::string_view> last_event_id_;
  std::optional<Interval> quiet_;  // begins anew with each event
  Nursery* nursery_ = nullptr;     // the body's, while it runs
  EventStreamEnd end_ = EventStreamEnd::finished;
  std::error_code error_;  // of a write
};

// Answers with events: `body`, a coroutine, sends them, until it returns or is cancelled. Sets content-type, and
// `cache-control: no-store` unless there is one. UsageError: the answer was begun. Uses Connection::on_stop() and
// until_peer_leaves().
// `body` is kept until it has ended. On g++ 12 name it before a co_await expression, as any lambda with captures.
template <class Fn>
[[nodiscard]] Task<EventStreamEnd> serve_events(const Request& request, Response& response,
                                                Connection& connection, Fn&& body,
                                                EventStreamOptions options = {}) {
  ::weft::detail::check_callable<Fn>();
  static_assert(std::is_invocable_r_v<Task<void>, std::decay_t<Fn>&, EventStream&>,
                "serve_events() takes a coroutine: Task<void>(EventStream&). A plain function or "
                "lambda cannot wait for what it sends: return weft::Task<void> and use co_await.");
  std::function<Task<void>(EventStream&)> kept(std::forward<Fn>(body));
  return detail::serve_events(request, response, connection, std::move(kept), options);
}

}  // namespace weft::inline v0::http
