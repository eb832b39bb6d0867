// SPDX-License-Identifier: MIT
#include "parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::inline v0::http::detail {

namespace {

// Where `view` lies, once the bytes at `from` are at `to`.
std::string_view moved_view(std::string_view view, const char* from, const char* to) noexcept {
  if (view.data() == nullptr) return view;
  return {to + (view.data() - from), view.size()};
}

// One more piece of what `view` has the beginning of (P1).
void extend(std::string_view& view, const char* at, std::size_t length) noexcept {
  view = view.data() == nullptr
             ? std::string_view(at, length)
             : std::string_view(view.data(), static_cast<std::size_t>(at + length - view.data()));
}

bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

// Past the spaces, and past CRLF; null if that is not what stands there.
const char* end_of_line(const char* at) noexcept {
  while (is_space(*at)) ++at;
  return at[0] == '\r' && at[1] == '\n' ? at + 2 : nullptr;
}

bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

}  // namespace

MessageParser::MessageParser(Kind kind, HeadLimits limits) : kind_(kind), limits_(limits) {
  llhttp_init(&parser_, kind == Kind::request ? HTTP_REQUEST : HTTP_RESPONSE, &settings());
  parser_.data = this;
}

const llhttp_settings_t& MessageParser::settings() noexcept {
  static const llhttp_settings_t settings = [] {
    llhttp_settings_t made;
    llhttp_settings_init(&made);
    made.on_url = on_target;
    made.on_header_field = on_name;
    made.on_header_field_complete = on_name_end;
    made.on_header_value = on_value;
    made.on_headers_complete = on_head;
    made.on_body = on_body;
    made.on_chunk_header = on_chunk;
    made.on_chunk_extension_name = on_extension;
    made.on_chunk_extension_value = on_extension;
    made.on_message_complete = on_message;
    return made;
  }();
  return settings;
}

int MessageParser::fail(int status, const char* text) noexcept {
  if (failure_ == 0) {
    failure_ = status;
    failure_text_ = text;
  }
  return HPE_USER;
}

int MessageParser::on_target(llhttp_t* parser, const char* at, std::size_t length) noexcept {
  MessageParser& self = of(parser);
  extend(self.target_, at, length);
  if (self.target_.size() > self.limits_.target_bytes_max)
    return self.fail(414, "the target is too long");
  return 0;
}

int MessageParser::on_name(llhttp_t* parser, const char* at, std::size_t length) {
  MessageParser& self = of(parser);
  if (!self.in_head_) return on_extension(parser, at, length);
  if (self.name_is_whole_) {
    if (self.fields_.size() == self.limits_.fields_max) {
      return self.fail(431, "there are too many header fields");
    }
    self.fields_.emplace_back();
    self.name_is_whole_ = false;
  }
  extend(self.fields_.back().name, at, length);
  return 0;
}

int MessageParser::on_name_end(llhttp_t* parser) noexcept {
  of(parser).name_is_whole_ = true;
  return 0;
}

int MessageParser::on_value(llhttp_t* parser, const char* at, std::size_t length) noexcept {
  MessageParser& self = of(parser);
  if (!self.in_head_) return on_extension(parser, at, length);
  std::string_view& value = self.fields_.back().value;
  if (value.data() && at != value.data() + value.size()) self.is_folded_ = true;
  extend(value, at, length);
  return 0;
}

// What is neither head nor body: trailers, and what stands behind the size of a chunk. It is dropped.
int MessageParser::on_extension(llhttp_t* parser, const char*, std::size_t length) noexcept {
  MessageParser& self = of(parser);
  self.aside_bytes_ += length;
  if (self.aside_bytes_ > self.limits_.bytes_max)
    return self.fail(431, "there are too many trailers");
  return 0;
}

int MessageParser::on_head(llhttp_t* parser) noexcept {
  MessageParser& self = of(parser);
  self.in_head_ = false;
  self.head_flags_ = parser->flags;
  self.keeps_alive_ = llhttp_should_keep_alive(parser) != 0;
  self.wants_upgrade_ = parser->upgrade != 0;
  // llhttp would stop for good: whether another protocol takes over is the handler's decision.
  parser->upgrade = 0;
  bool has_body = self.is_chunked() || parser->content_length > 0;
  if ((parser->flags & F_CONTENT_LENGTH) != 0)
    self.length_ = parser->content_length;
  else if (!self.is_chunked() && self.kind_ == Kind::request)
    self.length_ = 0;
  if (self.kind_ == Kind::response) {
    constexpr int kSkipBody = 1;
    if (!self.response_has_body()) return kSkipBody;
    has_body = self.length_ != 0;
  }
  return has_body ? HPE_PAUSED : 0;
}

// RFC 9112, 6.3. llhttp believes a length where there can be no body, and knows nothing of the request.
bool MessageParser::response_has_body() noexcept {
  int status = parser_.status_code;
  bool has_body = status >= 200 && status != 204 && status != 304 && asked_ != Method::head &&
                  !(asked_ == Method::connect && status < 300);
  ends_at_close_ = has_body && !is_chunked() && !length_;
  bool stays = parser_.http_minor == 1 ? (head_flags_ & F_CONNECTION_CLOSE) == 0
                                       : (head_flags_ & F_CONNECTION_KEEP_ALIVE) != 0;
  keeps_alive_ = stays && !ends_at_close_;
  return has_body;
}

int MessageParser::on_body(llhttp_t* parser, const char* at, std::size_t length) noexcept {
  MessageParser& self = of(parser);
  if (!self.body_.empty()) std::memmove(self.body_.data() + self.body_bytes_, at, length);
  self.body_bytes_ += length;
  return 0;
}

// The last one: what follows are trailers, whose bytes walk() looks at itself.
int MessageParser::on_chunk(llhttp_t* parser) noexcept {
  if (parser->content_length != 0) return 0;
  of(parser).in_trailers_ = true;
  return HPE_PAUSED;
}

int MessageParser::on_message(llhttp_t* parser) noexcept {
  of(parser).paused_at_message_ = true;
  return HPE_PAUSED;
}

MessageParser::Step MessageParser::walk(std::string_view bytes, std::span<std::byte> body) {
  body_ = body;
  body_bytes_ = 0;
  paused_at_message_ = false;
  bool was_in_head = in_head_;
  std::size_t taken = 0;
  llhttp_errno_t error;
  bool goes_on = true;
  while (goes_on) {
    bool was_in_trailers = in_trailers_;
    std::string_view rest = bytes.substr(taken);
    error = llhttp_execute(&parser_, rest.data(), rest.size());
    std::size_t count = rest.size();
    if (error == HPE_PAUSED) {
      count = static_cast<std::size_t>(llhttp_get_error_pos(&parser_) - rest.data());
      llhttp_resume(&parser_);
    } else if (error != HPE_OK) {
      fail_as(error, bytes);
      return {.taken = 0, .stop = Stop::failed};
    }
    if (was_in_trailers && !trailers_are_whole(rest.substr(0, count))) {
      fail(400, "a trailer is malformed, or goes on in the next line");
      return {.taken = 0, .stop = Stop::failed};
    }
    taken += count;
    goes_on = in_trailers_ && !was_in_trailers;
  }
  if (was_in_head) {
    head_ = std::string_view(head_.data() ? head_.data() : bytes.data(), head_.size() + taken);
    if (!in_head_ && !examine()) return {.taken = 0, .stop = Stop::failed};
    if (in_head_ && head_.size() > limits_.bytes_max) {
      fail(431, "the head is too large");
      return {.taken = 0, .stop = Stop::failed};
    }
  }
  if (error == HPE_OK) return {.taken = taken, .stop = Stop::more};
  return {.taken = taken, .stop = paused_at_message_ ? Stop::message : Stop::head};
}

void MessageParser::fail_as(llhttp_errno_t error, std::string_view bytes) noexcept {
  if (error == HPE_INVALID_VERSION || error == HPE_PAUSED_H2_UPGRADE) {
    fail(505, "the version is neither HTTP/1.0 nor HTTP/1.1");
  } else if (error == HPE_INVALID_METHOD && std::ranges::all_of(head_, is_upper) &&
             std::all_of(bytes.data(), llhttp_get_error_pos(&parser_) + 1, is_upper)) {
    fail(501, "the method is not known");  // up to where it cannot become one that is
  } else {
    const char* reason = llhttp_get_error_reason(&parser_);
    fail(400, reason && *reason ? reason : "the message is malformed");
  }
}

void MessageParser::moved(const char* from, const char* to) noexcept {
  head_ = moved_view(head_, from, to);
  target_ = moved_view(target_, from, to);
  for (Header& field : fields_) {
    field.name = moved_view(field.name, from, to);
    field.value = moved_view(field.value, from, to);
  }
}

void MessageParser::begin() noexcept {
  in_head_ = true;
  name_is_whole_ = true;
  is_folded_ = false;
  wants_upgrade_ = false;
  ends_at_close_ = false;
  in_trailers_ = false;
  trailer_byte_ = '\n';
  head_flags_ = 0;
  aside_bytes_ = 0;
  length_.reset();
  head_ = {};
  target_ = {};
  fields_.clear();
}

void MessageParser::rest(std::vector<Header>& fields) noexcept {
  begin();
  fields_.swap(fields);
}

std::vector<Header> MessageParser::take_head(std::string& text) {
  text.assign(head_);
  moved(head_.data(), text.data());
  head_ = {};
  target_ = {};
  return std::exchange(fields_, {});
}

// RFC 9112, 2.2 and 5.2: every line ends in CRLF, and none goes on in the next. So the fields lie one behind the other,
// with nothing between them but what belongs there; and what llhttp found is compared with that, not the bytes read again.
bool MessageParser::lines_are_whole(const char* first) noexcept {
  if (is_folded_) return false;
  const char* at = first;
  for (Header& field : fields_) {
    if (field.name.empty() || field.name.data() != at) return false;
    at += field.name.size();
    if (*at++ != ':') return false;
    while (is_space(*at)) ++at;
    if (!field.value.empty() && field.value.data() != at) return false;
    at = end_of_line(at + field.value.size());
    if (!at) return false;
    while (!field.value.empty() && is_space(field.value.back())) field.value.remove_suffix(1);
  }
  const char* end = head_.data() + head_.size();
  return at + 2 == end && at[0] == '\r' && at[1] == '\n';
}

// The same for trailers, which are dropped and lie in pieces.
bool MessageParser::trailers_are_whole(std::string_view bytes) noexcept {
  for (char c : bytes) {
    if ((c == '\n') != (trailer_byte_ == '\r')) return false;
    if (trailer_byte_ == '\n' && is_space(c)) return false;
    trailer_byte_ = c;
  }
  return true;
}

bool MessageParser::examine() {
  if (head_.size() > limits_.bytes_max) return refuse(431, "the head is too large");
  std::size_t at = 0;
  while (head_[at] == '\r' || head_[at] == '\n') ++at;  // 2.2: empty lines before it
  bool is_begun_well =
      kind_ == Kind::request ? examine_request_line(head_.substr(at)) : examine_status_line();
  if (!is_begun_well) return false;
  const char* first =
      static_cast<const char*>(std::memchr(head_.data() + at, '\n', head_.size() - at)) + 1;
  if (first[-2] != '\r' || !lines_are_whole(first)) {
    return refuse(400, "a header field is malformed, or goes on in the next line");
  }
  return examine_coding();
}

// RFC 9112, 4: exactly "HTTP/1.x SP 3DIGIT", and then a reason or none. llhttp knows other protocols, and skips empty
// lines before it.
bool MessageParser::examine_status_line() noexcept {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr std::size_t kStatusAt = 9, kReasonAt = 12;
  if (head_.size() <= kReasonAt || !head_.starts_with("HTTP/1.") || head_[kStatusAt - 1] != ' ' ||
      !std::ranges::all_of(head_.substr(kStatusAt, 3), is_digit) || parser_.status_code < 100 ||
      (head_[kReasonAt] != ' ' && head_[kReasonAt] != '\r')) {
    return refuse(400, "the status line is malformed");
  }
  if (parser_.http_minor > 1) return refuse(505, "the version is neither HTTP/1.0 nor HTTP/1.1");
  return true;
}

// RFC 9112, 3: exactly "method SP target SP HTTP/1.x CRLF". llhttp knows other protocols, and takes more spaces.
bool MessageParser::examine_request_line(std::string_view line) noexcept {
  std::size_t version_at = method_name().size() + 1 + target_.size() + 1;
  if (parser_.method > HTTP_SOURCE || line.size() < version_at + 10 ||
      line.substr(version_at, 5) != "HTTP/" || line.substr(version_at + 8, 2) != "\r\n") {
    return refuse(400, "the request line is malformed");
  }
  if (parser_.http_major != 1 || parser_.http_minor > 1) {
    return refuse(505, "the version is neither HTTP/1.0 nor HTTP/1.1");
  }
  return true;
}

bool MessageParser::examine_coding() noexcept {
  // By the field and not by llhttp's flag: that is not set for an empty one.
  for (const Header& field : fields_) {
    if (!equal_ignoring_case(field.name, "transfer-encoding")) continue;
    if (parser_.http_minor == 0) return refuse(400, "HTTP/1.0 has no transfer codings");
    if (field.value.empty()) return refuse(400, "a transfer coding without a name");
    if (!equal_ignoring_case(field.value, "chunked")) {
      return refuse(501, "the only transfer coding is chunked");
    }
  }
  return true;
}

Method MessageParser::method() const noexcept {
  switch (parser_.method) {
    case HTTP_GET:
      return Method::get;
    case HTTP_HEAD:
      return Method::head;
    case HTTP_POST:
      return Method::post;
    case HTTP_PUT:
      return Method::put;
    case HTTP_DELETE:
      return Method::delete_;
    case HTTP_OPTIONS:
      return Method::options;
    case HTTP_PATCH:
      return Method::patch;
    case HTTP_CONNECT:
      return Method::connect;
    case HTTP_TRACE:
      return Method::trace;
    default:
      return Method::other;
  }
}

std::string_view MessageParser::method_name() const noexcept {
  return llhttp_method_name(static_cast<llhttp_method_t>(parser_.method));
}

}  // namespace weft::inline v0::http::detail
