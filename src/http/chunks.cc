// SPDX-License-Identifier: MIT
#include "chunks.h"

#include <algorithm>
#include <cstring>

#include "characters.h"

namespace weft::inline v0::http::detail {

namespace {

constexpr int kNoDigit = -1;

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return kNoDigit;
}

}  // namespace

ChunkReader::Step ChunkReader::walk(std::string_view bytes, std::span<std::byte> body) noexcept {
  body_bytes_ = 0;
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::end) {
    if (state_ == State::data) {
      auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
      if (!body.empty()) std::memmove(body.data() + body_bytes_, bytes.data() + at, size);
      body_bytes_ += size;
      at += size;
      left_ -= size;
      framing_bytes_ = 0;
      if (left_ == 0) state_ = State::data_cr;
      continue;
    }
    State before = state_;
    state_ = next(bytes[at++]);
    if (state_ != State::failed && !count(before)) state_ = State::failed;
    if (state_ == State::failed) return {.taken = 0, .stop = Stop::failed};
  }
  return {.taken = at, .stop = state_ == State::end ? Stop::end : Stop::more};
}

bool ChunkReader::count(State state) noexcept {
  if (state >= State::trailer_start) {
    if (++trailer_bytes_ > bytes_max_) failure_text_ = "the trailers are too large";
  } else {
    if (++framing_bytes_ > bytes_max_) failure_text_ = "the size of a chunk has no end";
    bool is_extension = state >= State::before_semicolon && state <= State::after_quoted;
    if (is_extension && ++extension_bytes_ > bytes_max_) {
      failure_text_ = "the chunks' extensions are too long";
    }
  }
  return *failure_text_ == '\0';
}

ChunkReader::State ChunkReader::fail(const char* why) noexcept {
  failure_text_ = why;
  return State::failed;
}

ChunkReader::State ChunkReader::next(char c) noexcept {
  if (state_ >= State::trailer_start) return next_of_trailer(c);
  if (state_ >= State::before_semicolon && state_ <= State::after_quoted) {
    return next_of_extension(c);
  }
  return next_of_size(c);
}

// chunk-size [ chunk-ext ] CRLF, and the CRLF behind the chunk's bytes.
ChunkReader::State ChunkReader::next_of_size(char c) noexcept {
  switch (state_) {
    case State::size_start:
    case State::size: {
      int digit = hex_digit(c);
      if (digit == kNoDigit) {
        if (state_ == State::size) return behind_part(c);
        return fail("a chunk has no size");
      }
      constexpr int kBits = 64, kDigitBits = 4;
      if (left_ >> (kBits - kDigitBits) != 0) return fail("the size of a chunk overflows");
      left_ = left_ << kDigitBits | static_cast<std::uint64_t>(digit);
      return State::size;
    }
    case State::size_lf:
      if (c != '\n') return fail("the size of a chunk does not end in CR LF");
      return left_ == 0 ? State::trailer_start : State::data;
    case State::data_cr:
      if (c == '\r') return State::data_lf;
      break;
    default:  // data_lf
      if (c == '\n') return State::size_start;
      break;
  }
  return fail("a chunk does not end where its size says");
}

// Behind a size, or the name or the value of an extension.
ChunkReader::State ChunkReader::behind_part(char c) noexcept {
  if (c == '\r') return State::size_lf;
  if (c == ';') return State::name_start;
  if (is_space(c)) return State::before_semicolon;
  return fail("the size of a chunk, or an extension of it, is malformed");
}

// RFC 9112, 7.1.1: *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
ChunkReader::State ChunkReader::next_of_extension(char c) noexcept {
  const bool is_token = is_in(kTokenCharacters, c);
  switch (state_) {
    case State::before_semicolon:
      if (c != '\r') return behind_part(c);
      break;
    case State::name_start:
      if (is_space(c)) return state_;
      if (is_token) return State::name;
      break;
    case State::name:
      if (is_token) return state_;
      if (c == '=') return State::value_start;
      if (is_space(c)) return State::after_name;
      return behind_part(c);
    case State::after_name:
      if (is_space(c)) return state_;
      if (c == '=') return State::value_start;
      if (c == ';') return State::name_start;
      break;
    case State::value_start:
      if (is_space(c)) return state_;
      if (c == '"') return State::quoted;
      if (is_token) return State::value;
      break;
    case State::value:
      return is_token ? state_ : behind_part(c);
    case State::quoted:
      if (c == '"') return State::after_quoted;
      if (c == '\\') return State::escaped;
      if (is_in(kValueCharacters, c)) return state_;
      break;
    case State::escaped:
      if (is_in(kValueCharacters, c)) return State::quoted;
      break;
    default:  // after_quoted
      return behind_part(c);
  }
  return fail("an extension of a chunk is malformed");
}

// *( field-name ":" field-value CRLF ) CRLF
ChunkReader::State ChunkReader::next_of_trailer(char c) noexcept {
  switch (state_) {
    case State::trailer_start:
      if (c == '\r') return State::end_lf;
      if (is_in(kTokenCharacters, c)) return State::trailer_name;
      if (is_space(c) && has_trailer_ && folds_ == Folds::dropped) return State::trailer_value;
      break;
    case State::trailer_name:
      if (is_in(kTokenCharacters, c)) return state_;
      if (c == ':') return State::trailer_value;
      break;
    case State::trailer_value:
      if (c == '\r') return State::trailer_lf;
      if (is_in(kValueCharacters, c)) return state_;
      break;
    case State::trailer_lf:
      has_trailer_ = true;
      if (c == '\n') return State::trailer_start;
      break;
    case State::end_lf:
      if (c == '\n') return State::end;
      break;
    default:
      break;
  }
  return fail("a trailer is malformed, or goes on in the next line");
}

}  // namespace weft::inline v0::http::detail
