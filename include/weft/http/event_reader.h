// SPDX-License-Identifier: MIT
#pragma once
// weft::http::EventReader: server-sent events out of a body, as they come (HTML, 9.2.6).
//
//     EventReader events(response.body());
//     while (auto event = co_await ok(events.next())) std::puts(event->data.c_str());
//
// What an EventSource does besides is its user's: to come again after retry() with `last-event-id: ` + last_event_id(), and to look at
// the status and the content type.
//
// Threads        the Client's loop.
// Cancellation   next() is a cancel point where it waits; a cancelled one took nothing.
// Errors         those of the body; Error::event_too_large. After one of them it says the same again.
// Allocation     the strings, and 4 KiB.
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/request.h"

namespace weft::inline v0::http {

struct ReceivedEvent {
  std::string event;  // its type; "message" if it was not named
  std::string data;   // lines parted by LF
  std::string id;     // the last that was named, with this event or before
};

class EventReader {
 public:
  static constexpr std::size_t kBytesMax = 1024 * 1024;
  // Of an id: every event after it has a copy, and the next request sends it in a header field. Error::event_too_large.
  static constexpr std::size_t kIdBytesMax = 1024;

  // `bytes_max`: of one event. Requires: `body` lives as long.
  explicit EventReader(Body& body, std::size_t bytes_max = kBytesMax) noexcept
      : body_(body), bytes_max_(bytes_max) {}
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Nothing: the end. An event that was not ended is none.
  [[nodiscard]] Task<Result<std::optional<ReceivedEvent>>> next();

  // Of the last event that next() has returned, or of what came since then without data: a server may send an id alone.
  [[nodiscard]] const std::string& last_event_id() const noexcept { return last_event_id_; }
  // What the server asked for, last.
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const noexcept { return retry_; }

 private:
  [[nodiscard]] bool take_line();
  [[nodiscard]] std::optional<ReceivedEvent> take_field();

  Body& body_;
  std::size_t bytes_max_;
  std::array<std::byte, 4096> buffer_;
  std::string_view unread_;        // of buffer_
  std::string line_;               // as much of it as there is
  std::string event_, data_, id_;  // of the event that is being read
  std::string last_event_id_;
  std::optional<std::chrono::milliseconds> retry_;
  std::error_code error_;
  bool is_behind_cr_ = false;  // an LF would belong to it
  bool is_first_line_ = true;
  bool id_is_new_ = false;  // id_ is not last_event_id_
};

}  // namespace weft::inline v0::http
