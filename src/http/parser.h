// SPDX-License-Identifier: MIT
#pragma once
// MessageParser: llhttp, walked over bytes that may come in any pieces, and what it found as views. Chunks are ChunkReader's: to llhttp a
// message that has them ends with its head.
//
// It looks at every byte once. Between the pieces of a head, whoever holds the bytes may move them: moved() tells.
//
// Invariants
//   P1  the head's views lie in one contiguous stretch of memory, from begin() of the first piece on.
//   P2  walk() stops behind the head exactly if a body follows, and behind the message always.
//   P3  whether it refuses, and behind which message, depends on the bytes alone and never on the pieces that they come in. (Of
//       bytes that break two rules, the pieces may decide which one is named.)
//   P4  the head of a response lies in memory that may be written: where a line goes on in the next, spaces are put.
#include <llhttp/llhttp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chunks.h"
#include "weft/http/message.h"

namespace weft::inline v0::http::detail {

struct HeadLimits {
  std::size_t target_bytes_max;
  std::size_t bytes_max;
  std::size_t fields_max;
};

class MessageParser {
 public:
  // Before a request, however they come (RFC 9112, 2.2): more are refused. A peer could go on with them, a line a minute, for ever.
  static constexpr std::size_t kEmptyLinesMax = 32;

  enum class Kind : std::uint8_t { request, response };
  enum class Stop : std::uint8_t { more, head, message, failed };
  struct Step {
    std::size_t taken;
    Stop stop;
  };

  MessageParser(Kind kind, HeadLimits limits);
  MessageParser(const MessageParser&) = delete;
  MessageParser& operator=(const MessageParser&) = delete;

  // What is of the body is copied to the front of `body`, which is as large as `bytes` or empty: then it is dropped.
  [[nodiscard]] Step walk(std::string_view bytes, std::span<std::byte> body = {});
  // Of the last walk().
  [[nodiscard]] std::size_t body_bytes() const noexcept { return body_bytes_; }
  // The bytes of the head lie elsewhere now.
  void moved(const char* from, const char* to) noexcept;
  // The next message begins; its views are gone. The memory for them is kept.
  void begin() noexcept;
  // Whether a byte of it has come. Empty lines are none yet; half of one is.
  [[nodiscard]] bool has_begun() const noexcept;
  // The same as begin(), when none will come for a while: hands that memory over, in exchange for none. work() takes some.
  void rest(std::vector<Header>& fields) noexcept;
  void work(std::vector<Header>& fields) noexcept { fields_.swap(fields); }

  // --- The head, once walk() has stopped behind it, or behind the message ------------------------------------------

  [[nodiscard]] std::string_view head() const noexcept { return head_; }
  [[nodiscard]] std::string_view target() const noexcept { return target_; }
  [[nodiscard]] const std::vector<Header>& fields() const noexcept { return fields_; }
  [[nodiscard]] Method method() const noexcept;
  [[nodiscard]] std::string_view method_name() const noexcept;
  [[nodiscard]] int status() const noexcept { return parser_.status_code; }
  [[nodiscard]] int minor_version() const noexcept { return parser_.http_minor; }
  [[nodiscard]] int major_version() const noexcept { return parser_.http_major; }
  [[nodiscard]] bool is_chunked() const noexcept { return codings_.last_is_chunked; }
  // Nothing: chunked, or (a response) until the end.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
  [[nodiscard]] bool keeps_alive() const noexcept { return keeps_alive_; }
  [[nodiscard]] bool wants_upgrade() const noexcept { return wants_upgrade_; }
  // The request that the next response answers: after HEAD, and a CONNECT that succeeds, it has no body, whatever it says.
  void expect_answer_to(Method method) noexcept { asked_ = method; }
  // A response whose body goes on until the peer closes.
  [[nodiscard]] bool ends_at_close() const noexcept { return ends_at_close_; }
  // Hands the head over, into `text`: the fields' views lie there now, and the parser's own are gone.
  [[nodiscard]] std::vector<Header> take_head(std::string& text);

  // Not the parser's own decision. Returns: false.
  bool refuse(int status, const char* text) noexcept {
    fail(status, text);
    return false;
  }

  // --- Why it failed ------------------------------------------------------------------------------------------------

  // The status of the answer: 400, 414, 431, 501 or 505. Of a response 431, or anything else.
  [[nodiscard]] int failure() const noexcept { return failure_; }
  [[nodiscard]] const char* failure_text() const noexcept { return failure_text_; }

 private:
  static const llhttp_settings_t& settings() noexcept;
  static MessageParser& of(llhttp_t* parser) noexcept {
    return *static_cast<MessageParser*>(parser->data);
  }
  static int on_target(llhttp_t*, const char* at, std::size_t length) noexcept;
  static int on_name(llhttp_t*, const char* at, std::size_t length);
  static int on_name_end(llhttp_t*) noexcept;
  static int on_value(llhttp_t*, const char* at, std::size_t length) noexcept;
  static int on_head(llhttp_t*) noexcept;
  static int on_body(llhttp_t*, const char* at, std::size_t length) noexcept;
  static int on_message(llhttp_t*) noexcept;

  int fail(int status, const char* text) noexcept;
  void fail_as(llhttp_errno_t error, std::string_view bytes) noexcept;
  [[nodiscard]] bool is_unknown_method(llhttp_errno_t error, const char* begin,
                                       const char* at) const noexcept;
  // What llhttp lets pass: docs/design/http.md.
  [[nodiscard]] bool examine();
  [[nodiscard]] bool examine_request_line(std::string_view line) noexcept;
  [[nodiscard]] bool examine_status_line() noexcept;
  [[nodiscard]] bool lines_are_whole(const char* first) noexcept;
  [[nodiscard]] bool unfold(const char* first) noexcept;
  [[nodiscard]] Step walk_chunks(std::string_view bytes, std::span<std::byte> body) noexcept;
  void read_codings() noexcept;
  [[nodiscard]] bool examine_coding() noexcept;
  [[nodiscard]] bool response_has_body() noexcept;

  llhttp_t parser_;
  Kind kind_;
  bool in_head_ = true;
  bool name_is_whole_ = true;
  bool is_folded_ = false;
  bool paused_at_message_ = false;
  bool keeps_alive_ = false;
  bool wants_upgrade_ = false;
  bool ends_at_close_ = false;
  bool in_chunks_ = false;
  Method asked_ = Method::get;
  std::uint16_t head_flags_ = 0;
  std::uint8_t lines_skipped_ = 0;  // before head_
  int failure_ = 0;
  const char* failure_text_ = "";
  HeadLimits limits_;
  // All elements of Transfer-Encoding.
  struct Codings {
    std::uint32_t fields = 0, chunked = 0, others = 0;
    bool has_empty_field = false;
    bool last_is_chunked = false;
  };
  Codings codings_;
  std::optional<std::uint64_t> length_;
  std::string_view head_, target_;
  std::vector<Header> fields_;
  std::span<std::byte> body_;
  std::size_t body_bytes_ = 0;
  ChunkReader chunks_;
};

}  // namespace weft::inline v0::http::detail
