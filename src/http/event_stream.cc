// SPDX-License-Identifier: MIT
#include "weft/http/event_stream.h"

#include <string>
#include <utility>

#include "weft/base/assert.h"
#include "weft/core/ok.h"
#include "weft/sync/event.h"

namespace weft::inline v0::http {

namespace {

constexpr std::string_view kComment = ":\n\n";

void require_line(std::string_view text, const char* what) {
  constexpr std::string_view kForbidden("\r\n\0", 3);
  if (text.find_first_of(kForbidden) == text.npos) return;
  throw UsageError(std::string("EventMessage::") + what +
                   " has a line break or NUL in it, and would be read as something else");
}

void append_field(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(": ").append(value).append("\n");
}

// A line per line: CR, LF and CRLF end one, as for whoever reads it.
void append_data(std::string& text, std::string_view data) {
  while (true) {
    std::size_t end = data.find_first_of("\r\n");
    append_field(text, "data", data.substr(0, end));
    if (end == data.npos) return;
    bool is_pair = data.substr(end).starts_with("\r\n");
    data.remove_prefix(end + (is_pair ? 2 : 1));
  }
}

}  // namespace

std::string to_string(const EventMessage& message) {
  require_line(message.event, "event");
  if (message.id) require_line(*message.id, "id");
  if (message.retry && message.retry->count() < 0) {
    throw UsageError("EventMessage::retry is negative");
  }
  std::string text;
  if (!message.event.empty()) append_field(text, "event", message.event);
  if (message.id) append_field(text, "id", *message.id);
  if (message.retry) append_field(text, "retry", std::to_string(message.retry->count()));
  if (message.data) append_data(text, *message.data);
  return text += "\n";
}

// The text is made here: the message need not outlive the call.
Task<Result<void>> EventStream::send(const EventMessage& message) {
  return write(to_string(message));
}

Task<Result<void>> EventStream::send(std::string_view data) {
  return send(EventMessage{.data = data});
}

Task<Result<void>> EventStream::write(std::string text) {
  Result<void> written = co_await response_.write(text);
  if (written) written = co_await response_.flush();
  if (quiet_) quiet_->restart();
  if (!written) {
    error_ = written.error();
    end(EventStreamEnd::peer_left);
  }
  co_return written;
}

Task<void> EventStream::keep_alive() {
  while (co_await quiet_->tick()) {
    Result<void> written = co_await write(std::string(kComment));
    if (!written) co_return;
  }
}

// The first reason counts.
void EventStream::end(EventStreamEnd why) noexcept {
  if (end_ != EventStreamEnd::finished) return;
  end_ = why;
  if (nursery_) nursery_->cancel();
}

Task<EventStreamEnd> detail::serve_events(const Request& request, Response& response,
                                          Connection& connection,
                                          std::function<Task<void>(EventStream&)> body,
                                          EventStreamOptions options) {
  // Not the notice itself ends the stream: it comes in the middle of the server's own work.
  class StopNotice {
   public:
    explicit StopNotice(Connection& from) : connection_(from) {
      connection_.on_stop([this] { stopping.set(); });
    }
    StopNotice(const StopNotice&) = delete;
    StopNotice& operator=(const StopNotice&) = delete;
    ~StopNotice() { connection_.on_stop({}); }

    Event stopping{"http server stops"};

   private:
    Connection& connection_;
  };

  EventStream events(request, response, options);
  response.set_header("content-type", "text/event-stream");
  if (!response.find_header("cache-control")) response.header("cache-control", "no-store");
  // The head leaves now: for the browser the stream is open, though nothing has happened yet.
  Result<void> begun = co_await response.flush();
  if (!begun) co_return EventStreamEnd::peer_left;
  if (request.method() == Method::head) co_return EventStreamEnd::finished;

  StopNotice notice(connection);
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    events.nursery_ = &nursery;
    auto stops = [&]() -> Task<void> {
      co_await notice.stopping.wait();
      events.end(EventStreamEnd::stopping);
    };
    auto leaves = [&]() -> Task<void> {
      co_await connection.until_peer_leaves();
      events.end(EventStreamEnd::peer_left);
    };
    nursery.start(stops);
    nursery.start(leaves);
    if (events.quiet_) nursery.start(events.keep_alive());
    co_await body(events);
    co_return cancel;
  };
  try {
    co_await with_nursery(all);
  } catch (const std::system_error& error) {
    if (!events.error_ || error.code() != events.error_) throw;
  }
  co_return events.end_;
}

}  // namespace weft::inline v0::http
