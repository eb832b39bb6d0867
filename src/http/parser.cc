// SPDX-License-Identifier: MIT
#include "parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "characters.h"

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

// Past the spaces, and past CRLF; null if that is not what stands there.
const char* end_of_line(const char* at) noexcept {
  while (is_space(*at)) ++at;
  return at[0] == '\r' && at[1] == '\n' ? at + 2 : nullptr;
}

// A head lies in memory that is its holder's (P4): nothing of it is const but our view.
void blank(const char* at, std::size_t count) noexcept {
  std::memset(const_cast<char*>(at), ' ', count);
}

// RFC 9112, 2.2: empty lines before a request line, of which a bare CR or LF is none. Returns: their bytes.
std::size_t empty_lines(std::string_view head) noexcept {
  std::size_t at = 0;
  while (head.substr(at, 2) == "\r\n") at += 2;
  return at;
}

// A method of HTTP, and not of a protocol that llhttp knows besides.
bool is_ours(std::uint8_t method) noexcept { return method <= HTTP_SOURCE; }

// Whether "HTTP/2.0", say, ends there: a version by its form, and none of ours. Requires: `begin` is in front of it.
bool is_foreign_version(const char* begin, const char* end) noexcept {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr std::size_t kVersionBytes = 8;
  if (static_cast<std::size_t>(end - begin) < kVersionBytes) return false;
  std::string_view version(end - kVersionBytes, kVersionBytes);
  return version.starts_with("HTTP/") && is_digit(version[5]) && version[6] == '.' &&
         is_digit(version[7]) && version != "HTTP/1.0" && version != "HTTP/1.1";
}

}  // namespace

MessageParser::MessageParser(Kind kind, HeadLimits limits)
    : kind_(kind),
      limits_(limits),
      chunks_(limits.bytes_max,
              kind == Kind::request ? ChunkReader::Folds::refused : ChunkReader::Folds::dropped) {
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
  std::string_view& value = self.fields_.back().value;
  if (value.data() && at != value.data() + value.size()) self.is_folded_ = true;
  extend(value, at, length);
  return 0;
}

int MessageParser::on_head(llhttp_t* parser) noexcept {
  MessageParser& self = of(parser);
  self.in_head_ = false;
  self.head_flags_ = parser->flags;
  // RFC 9112, 9.3: "close" goes first; to llhttp, only where the version is 1.1.
  self.keeps_alive_ = llhttp_should_keep_alive(parser) && !(parser->flags & F_CONNECTION_CLOSE);
  self.wants_upgrade_ = parser->upgrade != 0;
  // llhttp would stop for good: whether another protocol takes over is the handler's decision.
  parser->upgrade = 0;
  self.read_codings();
  bool has_body = parser->content_length > 0;
  if ((parser->flags & F_CONTENT_LENGTH) != 0)
    self.length_ = parser->content_length;
  else if (!self.is_chunked() && self.kind_ == Kind::request)
    self.length_ = 0;
  constexpr int kSkipBody = 1;
  if (self.kind_ == Kind::response) {
    if (!self.response_has_body()) return kSkipBody;
    has_body = self.length_ != 0;
  }
  if (self.is_chunked()) {
    self.in_chunks_ = true;
    return kSkipBody;
  }
  return has_body ? HPE_PAUSED : 0;
}

// RFC 9110, 5.6.1: a list, whose empty elements count for nothing. llhttp refuses a request that has one at the end.
void MessageParser::read_codings() noexcept {
  for (const Header& field : fields_) {
    if (!equal_ignoring_case(field.name, "transfer-encoding")) continue;
    ++codings_.fields;
    bool is_empty = true;
    for (std::string_view rest = field.value; !rest.empty();) {
      std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view name = trimmed(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (name.empty()) continue;
      is_empty = false;
      bool is_chunked = equal_ignoring_case(name, "chunked");
      ++(is_chunked ? codings_.chunked : codings_.others);
      codings_.last_is_chunked = is_chunked;
    }
    codings_.has_empty_field |= is_empty;
  }
}

// RFC 9112, 6.3. llhttp believes a length where there can be no body, and knows nothing of the request.
bool MessageParser::response_has_body() noexcept {
  int status = parser_.status_code;
  bool has_body = status >= 200 && status != 204 && status != 304 && asked_ != Method::head &&
                  !(asked_ == Method::connect && status < 300);
  ends_at_close_ = has_body && !is_chunked() && !length_;
  bool stays = parser_.http_minor == 1 || (head_flags_ & F_CONNECTION_KEEP_ALIVE) != 0;
  keeps_alive_ = stays && (head_flags_ & F_CONNECTION_CLOSE) == 0 && !ends_at_close_;
  return has_body;
}

int MessageParser::on_body(llhttp_t* parser, const char* at, std::size_t length) noexcept {
  MessageParser& self = of(parser);
  if (!self.body_.empty()) std::memmove(self.body_.data() + self.body_bytes_, at, length);
  self.body_bytes_ += length;
  return 0;
}

int MessageParser::on_message(llhttp_t* parser) noexcept {
  of(parser).paused_at_message_ = !of(parser).in_chunks_;
  return HPE_PAUSED;
}

MessageParser::Step MessageParser::walk(std::string_view bytes, std::span<std::byte> body) {
  if (in_chunks_) return walk_chunks(bytes, body);
  body_ = body;
  body_bytes_ = 0;
  paused_at_message_ = false;
  bool was_in_head = in_head_;
  // P3: behind its limit a head is not looked at.
  if (std::size_t room = limits_.bytes_max - head_.size(); in_head_ && bytes.size() > room) {
    bytes = bytes.substr(0, room + 1);
  }
  std::size_t taken = bytes.size();
  llhttp_errno_t error = llhttp_execute(&parser_, bytes.data(), bytes.size());
  if (error == HPE_PAUSED) {
    taken = static_cast<std::size_t>(llhttp_get_error_pos(&parser_) - bytes.data());
    llhttp_resume(&parser_);
  } else if (error != HPE_OK) {
    fail_as(error, bytes);
    return {.taken = 0, .stop = Stop::failed};
  }
  if (was_in_head) {
    head_ = std::string_view(head_.data() ? head_.data() : bytes.data(), head_.size() + taken);
    if (lines_skipped_ + empty_lines(head_) / 2 > kEmptyLinesMax) {
      fail(400, "there are too many empty lines before the request");
      return {.taken = 0, .stop = Stop::failed};
    }
    if (!in_head_ && !examine()) return {.taken = 0, .stop = Stop::failed};
    if (in_head_ && head_.size() > limits_.bytes_max) {
      fail(431, "the head is too large");
      return {.taken = 0, .stop = Stop::failed};
    }
  }
  if (error == HPE_OK) return {.taken = taken, .stop = Stop::more};
  return {.taken = taken, .stop = paused_at_message_ ? Stop::message : Stop::head};
}

MessageParser::Step MessageParser::walk_chunks(std::string_view bytes,
                                               std::span<std::byte> body) noexcept {
  ChunkReader::Step step = chunks_.walk(bytes, body);
  body_bytes_ = chunks_.body_bytes();
  switch (step.stop) {
    case ChunkReader::Stop::failed:
      fail(400, chunks_.failure_text());
      return {.taken = 0, .stop = Stop::failed};
    case ChunkReader::Stop::end:
      in_chunks_ = false;
      return {.taken = step.taken, .stop = Stop::message};
    case ChunkReader::Stop::more:
      break;
  }
  return {.taken = step.taken, .stop = Stop::more};
}

void MessageParser::fail_as(llhttp_errno_t error, std::string_view bytes) noexcept {
  // Of a head, whose pieces lie one behind the other (P1). Only where a byte was refused it is there to be looked at: an error of a callback may
  // stand behind the last.
  const char* const at = llhttp_get_error_pos(&parser_);
  const char* const begin = head_.data() ? head_.data() : bytes.data();
  if (error == HPE_PAUSED_H2_UPGRADE ||
      (error == HPE_INVALID_VERSION && is_foreign_version(begin, at))) {
    fail(505, "the version is neither HTTP/1.0 nor HTTP/1.1");
  } else if (is_unknown_method(error, begin, at)) {
    fail(501, "the method is not known");
  } else {
    const char* reason = llhttp_get_error_reason(&parser_);
    fail(400, reason && *reason ? reason : "the message is malformed");
  }
}

// Whether what stands before `at` begins with a token that is no method of ours: as far as it has to be read to know that. The methods of
// other protocols llhttp knows, and refuses where it sees that this is HTTP.
bool MessageParser::is_unknown_method(llhttp_errno_t error, const char* begin,
                                      const char* at) const noexcept {
  if (error != HPE_INVALID_CONSTANT && error != HPE_INVALID_METHOD) return false;
  std::string_view before(begin, static_cast<std::size_t>(at - begin));
  if (error == HPE_INVALID_CONSTANT) return before.ends_with(" HTTP/") && !is_ours(parser_.method);
  before.remove_prefix(empty_lines(before));
  bool goes_on = is_in(kTokenCharacters, *at) || (*at == ' ' && !before.empty());
  return goes_on && all_in(kTokenCharacters, before);
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
  if (codings_.fields != 0) [[unlikely]] {
    in_chunks_ = false;
    codings_ = {};
    chunks_.begin();
  }
  head_flags_ = 0;
  lines_skipped_ = 0;
  length_.reset();
  head_ = {};
  target_ = {};
  fields_.clear();
}

bool MessageParser::has_begun() const noexcept { return empty_lines(head_) != head_.size(); }

void MessageParser::rest(std::vector<Header>& fields) noexcept {
  std::size_t skipped = lines_skipped_ + head_.size() / 2;  // there is nothing else in it
  begin();
  lines_skipped_ = static_cast<std::uint8_t>(skipped);
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

// RFC 9112, 5.2: to a user agent a line that goes on in the next has spaces there. What llhttp found is found again, line by line,
// and the ends of lines in the middle of a value are blanked where they lie. Refused is a fold in what frames the message: whoever has seen it
// before us may have read that in another way.
// Returns: false if that is not what is wrong with the lines.
bool MessageParser::unfold(const char* first) noexcept {
  const char* const end = head_.data() + head_.size();
  const char* at = first;
  bool has_fold = false;
  for (Header& field : fields_) {
    if (field.name.empty() || field.name.data() != at) return false;
    at += field.name.size();
    if (*at++ != ':') return false;
    const char* const value = at;
    bool is_folded = false;
    while (true) {
      auto* line_end =
          static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
      if (!line_end || line_end[-1] != '\r') return false;
      at = line_end + 1;
      if (at == end || !is_space(*at)) break;
      is_folded = true;
      blank(line_end - 1, 2);
    }
    field.value = trimmed({value, static_cast<std::size_t>(at - 2 - value)});
    if (!all_in(kValueCharacters, field.value)) return false;
    if (!is_folded) continue;
    has_fold = true;
    if (equal_ignoring_case(field.name, "content-length") ||
        equal_ignoring_case(field.name, "transfer-encoding")) {
      return false;
    }
    // llhttp has read it, and not as one value.
    if (equal_ignoring_case(field.name, "connection")) keeps_alive_ = false;
  }
  return has_fold && at + 2 == end && at[0] == '\r' && at[1] == '\n';
}

bool MessageParser::examine() {
  if (head_.size() > limits_.bytes_max) return refuse(431, "the head is too large");
  std::size_t at = empty_lines(head_);
  bool is_begun_well =
      kind_ == Kind::request ? examine_request_line(head_.substr(at)) : examine_status_line();
  if (!is_begun_well) return false;
  const char* first =
      static_cast<const char*>(std::memchr(head_.data() + at, '\n', head_.size() - at)) + 1;
  // RFC 9112, 4. llhttp takes anything as a reason.
  std::string_view start_line(head_.data(), static_cast<std::size_t>(first - 2 - head_.data()));
  if (kind_ == Kind::response && !all_in(kValueCharacters, start_line)) {
    return refuse(400, "there is a control character in the status line");
  }
  bool is_whole =
      first[-2] == '\r' && (lines_are_whole(first) || (kind_ == Kind::response && unfold(first)));
  if (!is_whole) {
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

// RFC 9112, 3: exactly "method SP target SP HTTP/1.x CRLF". llhttp knows other protocols, takes more spaces, and before the method any CR and
// LF. So its target must lie right behind the method's name, and that at the beginning of the line.
bool MessageParser::examine_request_line(std::string_view line) noexcept {
  std::size_t target_at = method_name().size() + 1;
  std::size_t version_at = target_at + target_.size() + 1;
  if (target_.data() != line.data() + target_at || line.size() < version_at + 10 ||
      line.substr(version_at, 5) != "HTTP/" || line.substr(version_at + 8, 2) != "\r\n") {
    return refuse(400, "the request line is malformed");
  }
  if (parser_.http_major != 1 || parser_.http_minor > 1) {
    return refuse(505, "the version is neither HTTP/1.0 nor HTTP/1.1");
  }
  return is_ours(parser_.method) || refuse(501, "the method is not known");
}

// By the fields and not by llhttp's flag: that is not set for an empty one.
bool MessageParser::examine_coding() noexcept {
  if (codings_.fields == 0) [[likely]]
    return true;
  if (parser_.http_minor == 0) return refuse(400, "HTTP/1.0 has no transfer codings");
  if ((head_flags_ & F_CONTENT_LENGTH) != 0) return refuse(400, "a length beside a coding");
  if (codings_.has_empty_field) return refuse(400, "a transfer coding without a name");
  if (!codings_.last_is_chunked || codings_.chunked > 1) {
    return refuse(400, "chunked is not the last transfer coding, once");
  }
  return codings_.others == 0 || refuse(501, "the only transfer coding is chunked");
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
