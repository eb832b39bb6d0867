// SPDX-License-Identifier: MIT
#include "client_connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "weft/core/nursery.h"
#include "weft/core/ok.h"
#include "weft/http/error.h"
#include "weft/net/error.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http::detail {

namespace {

using std::chrono::milliseconds;

// A body that leaves in one write with its head, before anything is read: sockets take as much without a reader.
constexpr std::size_t kTogetherMax = 16 * 1024;

std::unexpected<std::error_code> error_of(Error error) {
  return std::unexpected(make_error_code(error));
}

// Whether the peer, and not we, ended it: what it had to say may still be there to be read.
bool is_gone(const std::error_code& error) noexcept {
  return error == std::errc::broken_pipe || error == std::errc::connection_reset;
}

}  // namespace

ClientConnection::ClientConnection(std::unique_ptr<Transport> transport, const ClientLimits& limits)
    : transport_(std::move(transport)),
      limits_(limits),
      parser_(MessageParser::Kind::response, {.target_bytes_max = 0,
                                              .bytes_max = limits.head_bytes_max,
                                              .fields_max = limits.header_fields_max}),
      continue_("100-continue") {}

bool ClientConnection::is_reusable() const noexcept {
  return transport_ && !is_broken_ && sent_at_ && response_is_read_ && parser_.keeps_alive() &&
         input_.next().empty();
}

void ClientConnection::begin(const Outgoing& request) {
  request_ = request;
  parser_.begin();
  parser_.expect_answer_to(request.method);
  continue_.reset();
  sent_at_.reset();
  bytes_sent_ = body_sent_ = 0;
  informational_ = 0;
  has_answered_ = response_is_read_ = false;
}

Task<Result<void>> ClientConnection::exchange(Outgoing request) {
  begin(request);
  bool is_small = !request.body->is_streamed() && request.body->bytes().size() <= kTogetherMax &&
                  !request.expects_continue;
  Task<Result<void>> both = is_small ? send_then_read() : send_while_reading();
  Result<void> done = co_await std::move(both);
  if (!done) is_broken_ = true;
  co_return done;
}

// --- Sending ----------------------------------------------------------------------------------------

Task<Result<void>> ClientConnection::send_then_read() {
  Result<void> sent = co_await send();
  if (!sent && !is_gone(sent.error())) co_return sent;
  Result<void> head = co_await read_head();
  if (!head && !sent) co_return sent;
  co_return head;
}

// A server may answer before it has read all, and then stop reading: who only writes waits for ever.
Task<Result<void>> ClientConnection::send_while_reading() {
  Result<void> sent, head;
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto sending = [&]() -> Task<void> {
      sent = co_await send();
      // The reader waits for an answer that will not come.
      if (!sent && !is_gone(sent.error())) transport_->close();
    };
    nursery.start(sending);
    head = co_await read_head();
    co_return cancel;
  };
  co_await with_nursery(both);
  if (!head && !sent) co_return sent;
  co_return head;
}

Task<Result<void>> ClientConnection::send() {
  const RequestBody& body = *request_.body;
  Result<void> sent;
  if (request_.expects_continue) {
    std::array<net::Part, 1> head{net::Part(request_.head)};
    sent = co_await write(head);
    if (!sent) co_return sent;
    request_.head.clear();
    co_await timeout(limits_.continue_timeout, continue_.wait());
  }
  if (body.is_streamed()) {
    sent = co_await send_pieces();
  } else {
    std::array<net::Part, 2> parts{net::Part(request_.head), net::Part(body.bytes())};
    sent = co_await write(parts);
  }
  if (sent) note_sent();
  co_return sent;
}

Task<Result<void>> ClientConnection::send_pieces() {
  const RequestBody& body = *request_.body;
  BodyWriter writer(*this);
  Result<void> sent = co_await body.sender()(writer);
  if (!sent) co_return sent;
  if (body.length() && *body.length() != body_sent_) co_return error_of(Error::wrong_length);
  std::string_view end = body.length() ? "" : "0\r\n\r\n";
  std::array<net::Part, 2> parts{net::Part(request_.head), net::Part(end)};
  co_return co_await write(parts);
}

Task<Result<void>> ClientConnection::write_piece(std::span<const std::byte> bytes) {
  if (bytes.empty()) co_return {};
  if (is_broken_) co_return error_of(Error::broken_off);
  std::optional<std::uint64_t> length = request_.body->length();
  if (length && *length - body_sent_ < bytes.size()) co_return error_of(Error::wrong_length);
  body_sent_ += bytes.size();
  // The head leaves with the first piece.
  std::string before = std::exchange(request_.head, {});
  if (!length) {
    char digits[16];
    auto [end, error] = std::to_chars(digits, digits + sizeof digits, bytes.size(), 16);
    before.append(digits, end).append("\r\n");
  }
  std::array<net::Part, 3> parts{net::Part(before), net::Part(bytes),
                                 net::Part(length ? "" : "\r\n")};
  // Who is cancelled in here has sent a part of it: nothing may follow (C1).
  is_broken_ = true;
  Result<void> written = co_await write(parts);
  if (written) is_broken_ = false;
  co_return written;
}

Task<Result<void>> ClientConnection::write(std::span<net::Part> parts) {
  net::drop_front(parts, 0);
  while (!parts.empty()) {
    std::span<const net::Part> list(parts);
    Result<std::size_t> count = co_await transport_->write_some_within(limits_.write_timeout, list);
    if (!count && count.error() == std::errc::timed_out) co_return error_of(Error::write_timeout);
    if (!count) co_return std::unexpected(count.error());
    bytes_sent_ += *count;
    net::drop_front(parts, *count);
  }
  co_return {};
}

void ClientConnection::note_sent() noexcept { sent_at_ = now(); }

// --- Receiving --------------------------------------------------------------------------------------

Task<Result<void>> ClientConnection::read_head() {
  while (true) {
    std::optional<Result<void>> done = parse_head();
    if (done) co_return *done;
    co_await ok(read_more_of_head());
  }
}

std::optional<Result<void>> ClientConnection::parse_head() {
  while (!input_.next().empty()) {
    MessageParser::Step step = parser_.walk(input_.next());
    if (step.stop == Stop::failed) {
      constexpr int kTooLarge = 431;
      return error_of(parser_.failure() == kTooLarge ? Error::head_too_large : Error::bad_response);
    }
    input_.take(step.taken);
    if (step.stop == Stop::more) break;
    std::optional<Result<void>> done = look_at_head(step.stop == Stop::head);
    if (done) return done;
  }
  return std::nullopt;
}

std::optional<Result<void>> ClientConnection::look_at_head(bool has_body) {
  int status = parser_.status();
  bool is_switch = status == 101;
  // RFC 9110, 15.2.2: not unless it was asked for.
  if (is_switch && !request_.wants_upgrade) return error_of(Error::bad_response);
  if (status >= 200 || is_switch) {
    response_is_read_ = !has_body;
    if (is_switch) is_broken_ = true;  // for HTTP
    return Result<void>();
  }
  if (++informational_ > limits_.informational_max) return error_of(Error::bad_response);
  if (status == 100) continue_.set();
  parser_.begin();
  input_.release();
  return std::nullopt;
}

// The time is counted from the end of the request: one that takes an hour to send may take it.
Task<Result<void>> ClientConnection::read_more_of_head() {
  while (true) {
    std::chrono::nanoseconds left = limits_.head_timeout;
    if (sent_at_) left -= now() - *sent_at_;
    if (left <= left.zero()) co_return error_of(Error::head_timeout);
    Result<PooledBytes> more = co_await within(left, transport_->read());
    if (!more && more.error() == std::errc::timed_out) continue;
    if (!more) co_return std::unexpected(more.error());
    if (more->empty()) co_return std::unexpected(make_error_code(net::Error::unexpected_end));
    has_answered_ = true;
    input_.add(std::move(*more), parser_, false);
    co_return {};
  }
}

void ClientConnection::take_head(ResponseHead& head) {
  head.status = parser_.status();
  head.version = parser_.minor_version() == 1 ? Version::http_1_1 : Version::http_1_0;
  head.length = response_is_read_ ? 0 : parser_.content_length();
  head.fields = parser_.take_head(head.text);
  input_.release();
}

Task<Result<std::size_t>> ClientConnection::read_body(std::span<std::byte> buffer) {
  while (!response_is_read_) {
    if (input_.next().empty()) {
      Result<PooledBytes> more = co_await within(limits_.body_timeout, transport_->read());
      if (!more) {
        is_broken_ = true;
        if (more.error() == std::errc::timed_out) co_return error_of(Error::body_timeout);
        co_return std::unexpected(more.error());
      }
      if (more->empty()) {
        response_is_read_ = parser_.ends_at_close();
        is_broken_ = true;
        if (response_is_read_) co_return 0;
        co_return std::unexpected(make_error_code(net::Error::unexpected_end));
      }
      input_.add(std::move(*more), parser_, true);
    }
    MessageParser::Step step = parser_.walk(input_.next().substr(0, buffer.size()), buffer);
    if (step.stop == Stop::failed) {
      is_broken_ = true;
      co_return error_of(Error::bad_body);
    }
    input_.take(step.taken);
    response_is_read_ = step.stop == Stop::message;
    input_.release();
    if (parser_.body_bytes() > 0) co_return parser_.body_bytes();
  }
  co_return 0;
}

void ClientConnection::skip_buffered_body() {
  while (!response_is_read_ && !is_broken_ && !input_.next().empty()) {
    MessageParser::Step step = parser_.walk(input_.next());
    if (step.stop == Stop::failed) {
      is_broken_ = true;
      return;
    }
    input_.take(step.taken);
    response_is_read_ = step.stop == Stop::message;
  }
  input_.release();
}

ClientResponse::Upgraded ClientConnection::release() {
  std::span<const std::byte> rest = std::as_bytes(std::span(input_.next()));
  ClientResponse::Upgraded upgraded;
  upgraded.read_ahead.assign(rest.begin(), rest.end());
  upgraded.transport = std::move(transport_);
  input_.take(rest.size());
  input_.release();
  return upgraded;
}

}  // namespace weft::inline v0::http::detail
