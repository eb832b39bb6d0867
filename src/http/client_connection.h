// SPDX-License-Identifier: MIT
#pragma once
// ClientConnection: HTTP/1.1 on one Transport as the client sees it: a request, its response, and again.
//
// Invariants
//   C1  it is used again only if is_reusable(): the request was wholly sent, the response read to its end, nothing came behind it, and
//       neither side said that it closes. Everything else closes it.
//   C2  it holds no buffer between the end of a response and the next one.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "input.h"
#include "parser.h"
#include "weft/http/client.h"
#include "weft/sync/event.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::http::detail {

// Where the pieces of a request's body go.
class BodySink {
 public:
  virtual Task<Result<void>> write_piece(std::span<const std::byte> bytes) = 0;

 protected:
  ~BodySink() = default;
};

// A request as the connection sees it.
struct Outgoing {
  Method method = Method::get;
  std::string head;  // with its last line
  const RequestBody* body = nullptr;
  bool expects_continue = false;
  bool wants_upgrade = false;
};

// The fields are views into `text`.
struct ResponseHead {
  std::string text;
  std::vector<Header> fields;
  int status = 0;
  Version version = Version::http_1_1;
  std::optional<std::uint64_t> length;  // of the body; nothing: it is not known yet
};

class ClientConnection final : private BodySink {
 public:
  ClientConnection(std::unique_ptr<Transport> transport, const ClientLimits& limits);
  ~ClientConnection() { close(); }

  // Sends the request, and returns when the head of the response is there. Requires: the last response is over.
  Task<Result<void>> exchange(Outgoing request);
  // Once after each exchange(). Requires: `head` stays where it is as long as its fields are used.
  void take_head(ResponseHead& head);
  Task<Result<std::size_t>> read_body(std::span<std::byte> buffer);
  // What is there of the body is dropped, without waiting.
  void skip_buffered_body();

  [[nodiscard]] bool response_is_read() const noexcept { return response_is_read_; }
  [[nodiscard]] bool is_reusable() const noexcept;
  // Of this exchange.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  [[nodiscard]] bool has_answered() const noexcept { return has_answered_; }

  // Whether it may be taken out of the pool.
  [[nodiscard]] bool is_alive() noexcept { return transport_ && transport_->is_quiet(); }
  [[nodiscard]] ClientResponse::Upgraded release();
  void close() noexcept {
    if (!transport_) return;
    transport_->say_goodbye();  // a request has its own end: this makes none of what was not sent
    transport_->close();
  }

 private:
  using Stop = MessageParser::Stop;

  void begin(const Outgoing& request);
  Task<Result<void>> send_then_read();
  Task<Result<void>> send_while_reading();
  Task<Result<void>> send();
  Task<Result<void>> send_pieces();
  Task<Result<void>> write_piece(std::span<const std::byte> bytes) override;
  Task<Result<void>> write(std::span<net::Part> parts);
  void note_sent() noexcept;

  Task<Result<void>> read_head();
  // Nothing: there is more to read.
  [[nodiscard]] std::optional<Result<void>> parse_head();
  [[nodiscard]] std::optional<Result<void>> look_at_head(bool has_body);
  Task<Result<void>> read_more_of_head();

  std::unique_ptr<Transport> transport_;
  const ClientLimits& limits_;
  MessageParser parser_;
  Input input_;
  Outgoing request_;
  Event continue_;
  std::optional<TimePoint> sent_at_;  // the request's end
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t body_sent_ = 0;
  std::size_t informational_ = 0;
  bool has_answered_ = false;
  bool response_is_read_ = true;
  bool is_broken_ = false;
};

}  // namespace weft::inline v0::http::detail
