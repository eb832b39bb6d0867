// SPDX-License-Identifier: MIT
#pragma once
// ChunkReader: the chunked coding (RFC 9112, 7.1), in pieces of any size.
//
// llhttp has a reader of its own, which does not know all extensions that there may be, and knows some that there may not. This one has the grammar:
// extensions and trailers are checked, and dropped. It looks at every byte of the framing once, and copies the others.
//
// Invariants
//   K1  the verdict, and where the body ends, depend on the bytes alone: all that is known of them is in the members.
//   K2  every CR is followed by LF, and no LF stands elsewhere, in a quoted string neither; but for the chunks' own bytes.
//   K3  bounded by bytes_max are what lies between two bytes of the body, all extensions together, and all trailers together.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::inline v0::http::detail {

class ChunkReader {
 public:
  enum class Stop : std::uint8_t { more, end, failed };
  // Of a trailer that goes on in the next line: RFC 9112, 5.2 leaves the choice to a server, and none to a user agent.
  enum class Folds : std::uint8_t { refused, dropped };
  struct Step {
    std::size_t taken;
    Stop stop;
  };

  ChunkReader(std::size_t bytes_max, Folds folds) noexcept : bytes_max_(bytes_max), folds_(folds) {}
  void begin() noexcept { *this = ChunkReader(bytes_max_, folds_); }

  // What is of the body is copied to the front of `body`, which is as large as `bytes` or empty: then it is dropped.
  // Behind the end nothing is taken.
  [[nodiscard]] Step walk(std::string_view bytes, std::span<std::byte> body) noexcept;
  // Of the last walk().
  [[nodiscard]] std::size_t body_bytes() const noexcept { return body_bytes_; }
  // Why it failed.
  [[nodiscard]] const char* failure_text() const noexcept { return failure_text_; }

 private:
  enum class State : std::uint8_t {
    size_start,
    size,
    before_semicolon,  // BWS behind a size, a name or a value
    name_start,
    name,
    after_name,
    value_start,
    value,
    quoted,
    escaped,
    after_quoted,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer_name,
    trailer_value,
    trailer_lf,
    end_lf,
    end,
    failed,
  };

  [[nodiscard]] State next(char c) noexcept;
  [[nodiscard]] State next_of_size(char c) noexcept;
  [[nodiscard]] State next_of_extension(char c) noexcept;
  [[nodiscard]] State next_of_trailer(char c) noexcept;
  [[nodiscard]] State behind_part(char c) noexcept;
  [[nodiscard]] State fail(const char* why) noexcept;
  // Returns: false if a bound is reached.
  [[nodiscard]] bool count(State state) noexcept;

  State state_ = State::size_start;
  bool has_trailer_ = false;
  std::uint64_t left_ = 0;  // of the chunk
  std::size_t framing_bytes_ = 0, extension_bytes_ = 0, trailer_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  std::size_t bytes_max_;
  const char* failure_text_ = "";
  Folds folds_;
};

}  // namespace weft::inline v0::http::detail
