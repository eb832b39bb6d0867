// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Response: the answer.
//
//     response.status(404);
//     response.header("x-reason", "gone fishing");
//     response.body("text/plain", "Nobody is here.\n");       // leaves when the handler returns
//
//     while (auto row = co_await rows.next()) co_await ok(response.write(*row));     // or in pieces
//
// The first write() sends the head, so status and header fields come before it. It takes the bytes, and waits while
// more than Limits::output_bytes are on their way. flush() waits until they are with the kernel.
//
// Length: of body() it is known. Of write() it is not, and goes in chunks, unless content_length() was called. A HEAD
// request is answered without the body, by the same handler.
//
// Threads        the connection's loop.
// Cancellation   write() and flush() are cancel points where they wait.
// Errors         what the transport says: the peer has gone, or Error::write_timeout.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/http/message.h"
#include "weft/io/descriptor.h"

namespace weft::inline v0::http {

class Response;

// Bytes of a file.
struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

namespace detail {

// Where an answer goes: a version of the protocol.
class ResponseSink {
 public:
  // The first call sends the head.
  virtual Task<Result<void>> write_body(Response& response, std::span<const std::byte> bytes) = 0;
  virtual Task<Result<void>> write_file(Response& response, Descriptor& file, FileRange range) = 0;
  virtual Task<Result<void>> flush(Response& response) = 0;
  // A piece of the body is missing: nothing of it may look like its end (H4).
  virtual void break_off() noexcept = 0;

 protected:
  ~ResponseSink() = default;
};

}  // namespace detail

class Response {
 public:
  Response() = default;
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // --- The head ---------------------------------------------------------------------------------------------------

  // 200, until it is set. UsageError: not between 200 and 599, or the head has been sent.
  void status(int code);
  [[nodiscard]] int status() const noexcept { return status_; }
  // Adds a field. UsageError: as HeaderLines; one that is the server's own (content-length: content_length();
  // transfer-encoding; connection: close_after()); or the head has been sent.
  void header(std::string_view name, std::string_view value);
  void set_header(std::string_view name, std::string_view value);
  void remove_header(std::string_view name);
  [[nodiscard]] std::optional<std::string_view> find_header(std::string_view name) const noexcept {
    return headers_.find(name);
  }
  // The connection ends after this answer.
  void close_after() noexcept { closes_ = true; }

  // --- The body, whole --------------------------------------------------------------------------------------------

  // In place of what was set before.
  void body(std::string bytes);
  void body(std::string_view type, std::string bytes);
  [[nodiscard]] std::string& body() noexcept { return body_; }

  // --- The body, in pieces ----------------------------------------------------------------------------------------

  // So many bytes will be written, no more and no less.
  void content_length(std::uint64_t bytes);
  [[nodiscard]] Task<Result<void>> write(std::span<const std::byte> bytes);
  [[nodiscard]] Task<Result<void>> write(std::string_view text) {
    return write(std::as_bytes(std::span(text)));
  }
  // From a file, by the kernel itself where it can. Error::wrong_length: it is shorter than it was.
  [[nodiscard]] Task<Result<void>> write_file(Descriptor& file, FileRange range);
  // Sends the head, if that is not done, and waits until all that was written has left.
  [[nodiscard]] Task<Result<void>> flush();
  // Whether the head has been sent: the status cannot be changed any more.
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }

  // --- For a version of the protocol ------------------------------------------------------------------------------

  void reset(detail::ResponseSink& sink) noexcept;
  // From now on it goes there. Returns: where it went.
  detail::ResponseSink& divert(detail::ResponseSink& sink) noexcept {
    return *std::exchange(sink_, &sink);
  }
  void clear_content_length() noexcept { length_.reset(); }
  void begin() noexcept { has_begun_ = true; }
  [[nodiscard]] const HeaderLines& headers() const noexcept { return headers_; }
  [[nodiscard]] bool closes() const noexcept { return closes_; }
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
  // Nothing will be asked for a while: hands its memory over, in exchange for none. work() takes some.
  void rest(HeaderLines& lines) noexcept;
  void work(HeaderLines& lines) noexcept { headers_.swap(lines); }

 private:
  void require_head(const char* what) const;

  detail::ResponseSink* sink_ = nullptr;
  int status_ = 200;
  bool has_begun_ = false;
  bool closes_ = false;
  std::optional<std::uint64_t> length_;
  HeaderLines headers_;
  std::string body_;
};

}  // namespace weft::inline v0::http
