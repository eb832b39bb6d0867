// SPDX-License-Identifier: MIT
#include "weft/http/event_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "weft/http/error.h"

namespace weft::inline v0::http {

// Requires: there is something unread. Returns: whether line_ is whole.
bool EventReader::take_line() {
  if (std::exchange(is_behind_cr_, false) && unread_.starts_with('\n')) unread_.remove_prefix(1);
  std::size_t end = unread_.find_first_of("\r\n");
  line_ += unread_.substr(0, end);
  if (end == unread_.npos) {
    unread_ = {};
    return false;
  }
  is_behind_cr_ = unread_[end] == '\r';
  unread_.remove_prefix(end + 1);
  return true;
}

// What line_ says. Returns: the event that it ends. Sets error_.
std::optional<ReceivedEvent> EventReader::take_field() {
  std::string line = std::exchange(line_, {});
  std::string_view rest = line;
  if (std::exchange(is_first_line_, false) && rest.starts_with("\xef\xbb\xbf")) {
    rest.remove_prefix(3);
  }
  if (rest.empty()) {
    std::string event = std::exchange(event_, {}), data = std::exchange(data_, {});
    // A blank line costs the server one byte, and must not cost us an id.
    if (std::exchange(id_is_new_, false)) last_event_id_ = id_;
    if (data.empty()) return std::nullopt;
    data.pop_back();  // the last line's end
    return ReceivedEvent{.event = event.empty() ? "message" : std::move(event),
                         .data = std::move(data),
                         .id = last_event_id_};
  }
  std::size_t colon = rest.find(':');
  std::string_view name = rest.substr(0, colon);
  std::string_view value = colon == rest.npos ? std::string_view() : rest.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    data_.append(value).append("\n");
  } else if (name == "event") {
    event_ = value;
  } else if (name == "id") {
    if (value.size() > kIdBytesMax) {
      error_ = make_error_code(Error::event_too_large);
    } else if (value.find('\0') == value.npos) {
      id_ = value;
      id_is_new_ = true;
    }
  } else if (name == "retry") {
    std::uint32_t milliseconds = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), milliseconds);
    bool is_number = error == std::errc() && end == value.data() + value.size();
    if (is_number) retry_ = std::chrono::milliseconds(milliseconds);
  }
  return std::nullopt;  // also a comment, and what is not known
}

Task<Result<std::optional<ReceivedEvent>>> EventReader::next() {
  while (!error_) {
    while (!unread_.empty()) {
      bool is_whole = take_line();
      if (line_.size() + data_.size() > bytes_max_) {
        error_ = make_error_code(Error::event_too_large);
        break;
      }
      if (!is_whole) break;
      std::optional<ReceivedEvent> event = take_field();
      if (error_) break;
      if (event) co_return event;
    }
    if (error_) break;
    Result<std::size_t> count = co_await body_.read_some(buffer_);
    if (!count) {
      error_ = count.error();
    } else if (*count == 0) {
      co_return std::nullopt;
    } else {
      unread_ = {reinterpret_cast<const char*>(buffer_.data()), *count};
    }
  }
  co_return std::unexpected(error_);
}

}  // namespace weft::inline v0::http
