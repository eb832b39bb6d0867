// SPDX-License-Identifier: MIT
#include "session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include "utf8.h"
#include "weft/base/assert.h"
#include "weft/core/nursery.h"
#include "weft/core/ok.h"
#include "weft/core/primitives.h"
#include "weft/core/try.h"
#include "weft/net/error.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::ws {

Task<void> Handler::on_open(Connection&, const http::Request&) { co_return; }
Task<void> Handler::on_close(Connection&, CloseCode, std::string_view) { co_return; }

namespace detail {

namespace {

using std::chrono::milliseconds;

// What linger() reads at most.
constexpr std::size_t kLingerBytesMax = 1024 * 1024;
// More than this is not kept between two writes (W5).
constexpr std::size_t kKeptBytesMax = 256;

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text));
}

void require_close(CloseCode code, std::string_view reason) {
  if (!is_sendable(code)) {
    throw UsageError("Connection::close(): the code " + std::to_string(code) +
                     " may not be sent; a program's own are 4000 to 4999");
  }
  if (reason.size() > kCloseReasonBytesMax || !is_utf8(bytes_of(reason))) {
    throw UsageError("Connection::close(): a reason is UTF-8, and not longer than 123 bytes");
  }
}

}  // namespace

void require_valid(const Limits& limits) {
  if (limits.fragment_bytes == 0 || limits.output_bytes == 0) {
    throw UsageError(
        "ws::Limits: fragment_bytes and output_bytes are not 0: nothing would be sent");
  }
}

// One task is inside of an operation: W6.
class Session::Use {
 public:
  explicit Use(Session& session) noexcept : session_(session) { ++session_.uses_; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (--session_.uses_ == 0) session_.left_.unpark_all();
  }

 private:
  Session& session_;
};

// One task reads at a time.
class Session::Turn {
 public:
  explicit Turn(Session& session) : session_(session) {
    if (session_.is_receiving_) {
      throw UsageError("Connection::receive(): a second task receives from it");
    }
    session_.is_receiving_ = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { session_.is_receiving_ = false; }

 private:
  Session& session_;
};

Session::Coding::Coding(const SessionSetup& setup)
    : bytes_min(setup.deflate.bytes_min),
      deflater(setup.deflate,
               setup.role == Role::server ? setup.terms->server_window_bits
                                          : setup.terms->client_window_bits,
               setup.role == Role::server ? setup.terms->server_context_takeover
                                          : setup.terms->client_context_takeover),
      inflater(setup.role == Role::server ? setup.terms->client_window_bits
                                          : setup.terms->server_window_bits,
               setup.role == Role::server ? setup.terms->client_context_takeover
                                          : setup.terms->server_context_takeover) {}

Session::Session(http::Transport& transport, const Limits& limits, SessionSetup setup)
    : transport_(transport),
      role_(setup.role),
      limits_(limits),
      subprotocol_(std::move(setup.subprotocol)),
      codec_(role_ == Role::client),
      coding_(setup.terms ? std::make_unique<Coding>(setup) : nullptr),
      reader_(codec_, limits_, role_ == Role::server, coding_ ? &coding_->inflater : nullptr),
      read_ahead_(std::move(setup.read_ahead)),
      input_(read_ahead_) {}

// --- The life of it ---------------------------------------------------------------------------------

// A connection that waits consists of the frames of run() and of what it awaits, one in the other (W5): who only calls another one
// is no coroutine.
Task<void> Session::run(const Talk& talk) {
  std::exception_ptr error;
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(write_loop());
    try {
      co_await talk(*this);
    } catch (...) {
      error = std::current_exception();
    }
    if (error) {
      fail(Error::internal_error, close_codes::internal_error, "");
    } else {
      // However that ends: closed() says how.
      [[maybe_unused]] Result<void> done = co_await close(close_codes::normal, {});
    }
    co_return join;
  };
  auto body = [&]() { return with_nursery(both); };
  auto end = [this]() -> Task<void> { return leave(); };
  co_await try_(body).finally(end);
  if (error) std::rethrow_exception(error);
}

Task<void> Session::leave() {
  co_await wait_for_users();
  co_await linger();
}

Task<void> Session::serve(Handler& handler, const http::Request& request) {
  auto talk = [&]() -> Task<void> {
    std::exception_ptr error;
    try {
      co_await handler.on_open(*this, request);
      while (true) {
        Result<Message> message = co_await receive();
        if (!message) break;
        co_await handler.on_message(*this, std::move(*message));
      }
    } catch (...) {
      error = std::current_exception();
    }
    if (!error) co_return;
    fail(Error::internal_error, close_codes::internal_error, "");  // on_close() is to hear of it
    std::rethrow_exception(error);
  };
  auto goodbye = [&]() -> Task<void> {
    Close how = closed_.value_or(Close());
    co_await handler.on_close(*this, how.code, how.reason);
  };
  co_await try_(talk).finally(goodbye);
}

// W6. Who waits in an operation has been told that it ended, or is now.
Task<void> Session::wait_for_users() {
  if (!end_) lose(make_error_code(std::errc::operation_canceled));
  if (is_receiving_) {  // in a read that knows nothing of the end
    is_broken_ = true;
    transport_.close();
  }
  while (uses_ > 0) co_await left_.park();
}

// RFC 6455, 7.1.1: the server closes the stream. A client waits for that; and who has failed the connection reads what is still
// on its way, so that the kernel does not reset it, and our Close with it.
Task<void> Session::linger() {
  if (is_broken_) co_return;
  if (has_failed_) {
    Result<void> shut = co_await within(limits_.close_timeout, transport_.shutdown_write());
    if (!shut) co_return;
  } else if (role_ == Role::server) {
    co_return;
  }
  auto drop = [this]() -> Task<void> {
    for (std::size_t dropped = 0; dropped < kLingerBytesMax;) {
      Result<PooledBytes> bytes = co_await transport_.read();
      if (!bytes || bytes->empty()) co_return;
      dropped += bytes->size();
    }
  };
  co_await timeout(limits_.close_timeout, drop);
}

void Session::note_end(std::error_code error, Close how) {
  if (end_) return;
  end_ = error;
  closed_ = std::move(how);
  ended_.set();
  room_.unpark_all();
  drained_.unpark_all();
  work_.unpark_all();
  reader_left_.unpark_all();
}

// The transport is gone, or nobody is at its other end.
void Session::lose(std::error_code error) {
  is_broken_ = true;
  transport_.close();
  queue_.clear();
  queued_ = 0;
  note_end(error, Close(close_codes::lost, ""));
  work_.unpark_all();
}

// RFC 6455, 7.1.7.
void Session::fail(Error error, CloseCode code, std::string_view text) {
  if (end_) return;
  has_failed_ = true;
  if (!close_is_written_) {
    close_ = Close(code, std::string(text));
    close_now_ = true;
  }
  note_end(make_error_code(error), Close(code, std::string(text)));
}

// RFC 6455, 5.5.1: with the same code.
void Session::answer_close(const Close& close) {
  if (!close_) close_ = close;
  note_end(make_error_code(Error::closed), close);
}

void Session::begin_close(CloseCode code, std::string_view reason) {
  if (end_ || close_) return;
  close_ = Close(code, std::string(reason));
  room_.unpark_all();
  work_.unpark_all();
}

Task<Result<void>> Session::close(CloseCode code, std::string_view reason) {
  require_close(code, reason);
  Use use(*this);
  co_await finish_if_cancelled();
  begin_close(code, reason);
  while (!end_) {
    if (is_receiving_) {
      co_await reader_left_.park();
    } else {
      co_await drop_until_end();
    }
  }
  if (end_ == Error::closed) co_return {};
  co_await finish_if_cancelled();  // L3, as in receive()
  co_return std::unexpected(end_);
}

// --- Reading ----------------------------------------------------------------------------------------

Task<Result<Message>> Session::receive() {
  Use use(*this);
  co_await finish_if_cancelled();
  // Somebody has closed it meanwhile, and reads until the end, or until he is cancelled.
  while (is_dropping_) co_await reader_left_.park();
  Turn turn(*this);
  while (true) {
    Next next = advance();
    if (next == Next::message) co_return reader_.take_message();
    if (next == Next::end) break;
    std::chrono::nanoseconds patience = prepare_read();
    Result<PooledBytes> more = co_await transport_.read_within(patience);
    after_read(std::move(more));
  }
  co_await finish_if_cancelled();  // its own cancellation is no error to it (L3)
  co_return std::unexpected(end_);
}

Task<void> Session::drop_until_end() {
  // Cancelled: who waits for the end behind this reads on itself.
  struct Dropping {
    Session& session;
    explicit Dropping(Session& of) : session(of) { session.is_dropping_ = true; }
    Dropping(const Dropping&) = delete;
    Dropping& operator=(const Dropping&) = delete;
    ~Dropping() {
      session.is_dropping_ = false;
      session.reader_left_.unpark_all();
    }
  };
  Turn turn(*this);
  Dropping dropping(*this);
  while (true) {
    Next next = advance();
    if (next == Next::end) co_return;
    if (next == Next::message) {
      [[maybe_unused]] Message dropped = reader_.take_message();
      continue;
    }
    std::chrono::nanoseconds patience = prepare_read();
    Result<PooledBytes> more = co_await transport_.read_within(patience);
    after_read(std::move(more));
  }
}

Session::Next Session::advance() {
  using Step = MessageReader::Step;
  while (!end_) {
    switch (reader_.next(input_)) {
      case Step::message:
        return Next::message;
      case Step::ping:
        // 5.5.3: of several that were not answered yet, the last.
        if (!close_) pong_ = reader_.ping();
        work_.unpark_all();
        break;
      case Step::pong:
        break;  // it came: that is all it says
      case Step::close:
        answer_close(reader_.close());
        break;
      case Step::failed:
        fail(reader_.failure().error, reader_.failure().code, reader_.failure().text);
        break;
      case Step::more:
        return Next::read;
    }
  }
  return Next::end;
}

// Returns: until the next ping, or until the answer to it is late. For ever once a Close is on its way: no ping goes behind it, and
// write_loop() counts the time that the peer has to answer.
std::chrono::nanoseconds Session::prepare_read() {
  lent_ = {};
  input_ = {};
  if (read_ahead_.capacity() > 0) std::vector<std::byte>().swap(read_ahead_);
  codec_.rest();
  has_pings_ = limits_.ping_interval.count() > 0 && !close_;
  if (!has_pings_) return std::chrono::nanoseconds::max();
  // From the last byte, or the ping, and not from this call: who receives with a timeout of its own comes here often.
  TimePoint due = heard_or_pinged_ + (awaits_pong_ ? limits_.pong_timeout : limits_.ping_interval);
  return std::max<std::chrono::nanoseconds>(std::chrono::ceil<milliseconds>(due - now()),
                                            milliseconds(0));
}

void Session::after_read(Result<PooledBytes> more) {
  if (end_) return;
  if (more && !more->empty()) {
    awaits_pong_ = false;
    heard_or_pinged_ = now();
    lent_ = std::move(*more);
    input_ = {lent_.data(), lent_.size()};
  } else if (more) {
    lose(make_error_code(net::Error::unexpected_end));
  } else if (!has_pings_ || more.error() != std::errc::timed_out) {
    lose(more.error());
  } else if (close_) {
    // It was sent while this waited.
  } else if (awaits_pong_) {
    lose(make_error_code(Error::pong_timeout));
  } else {
    awaits_pong_ = ping_ = true;
    heard_or_pinged_ = now();
    work_.unpark_all();
  }
}

// --- Writing ----------------------------------------------------------------------------------------

std::error_code Session::send_error() const noexcept {
  if (end_) return end_;
  return close_ ? make_error_code(Error::closed) : std::error_code();
}

Task<Result<void>> Session::send_message(Kind kind, std::span<const std::byte> bytes) {
  Use use(*this);
  co_await finish_if_cancelled();
  if (kind == Kind::text && !is_utf8(bytes)) {
    co_return std::unexpected(make_error_code(Error::bad_text));
  }
  LocalMutexGuard turn = co_await senders_.lock();  // first come, first served
  while (!send_error() && !has_room(bytes.size())) co_await room_.park();
  if (std::error_code error = send_error()) {
    co_await finish_if_cancelled();  // L3, as in receive()
    co_return std::unexpected(error);
  }
  enqueue(kind, bytes);  // nothing is awaited from here on: W3
  co_return {};
}

bool Session::try_send(const Message& message) {
  if (send_error() || senders_.is_locked() || !has_room(message.data.size())) return false;
  if (message.is_text() && !is_utf8(message.bytes())) return false;
  enqueue(message.kind, message.bytes());
  return true;
}

void Session::enqueue(Kind kind, std::span<const std::byte> bytes) {
  bool is_compressed = coding_ && !bytes.empty() && bytes.size() >= coding_->bytes_min;
  Outgoing out{.opcode = kind == Kind::text ? Opcode::text : Opcode::binary,
               .is_compressed = is_compressed,
               .payload = {}};
  if (is_compressed) {
    out.payload = coding_->deflater.compress(bytes);
  } else {
    out.payload.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  queued_ += cost(out.payload.size());
  queue_.push_back(std::move(out));
  work_.unpark_all();
}

Task<Result<void>> Session::flush() {
  Use use(*this);
  co_await finish_if_cancelled();
  while (!end_ && has_output()) co_await drained_.park();
  if (!end_) co_return {};
  co_await finish_if_cancelled();  // L3, as in receive()
  co_return std::unexpected(end_);
}

bool Session::has_output() const noexcept {
  return !in_flight_.empty() || !queue_.empty() || pong_ || ping_ || (close_ && !close_is_written_);
}

void Session::fill_from_queue() {
  while (!queue_.empty() && in_flight_.size() < limits_.output_bytes) {
    Outgoing& out = queue_.front();
    std::span<const std::byte> rest = bytes_of(out.payload).subspan(out.written);
    std::size_t count = std::min(rest.size(), limits_.fragment_bytes);
    bool is_first = out.written == 0;
    bool is_last = count == rest.size();
    FrameHead head{.opcode = is_first ? out.opcode : Opcode::continuation,
                   .is_final = is_last,
                   .is_compressed = is_first && out.is_compressed};
    codec_.write(in_flight_, head, rest.first(count));
    out.written += count;
    if (!is_last) return;  // so that a pong goes between
    queued_ -= cost(out.payload.size());
    queue_.pop_front();
  }
}

void Session::append_close() {
  std::string payload;
  if (close_->code != close_codes::no_status) {
    payload += static_cast<char>(close_->code >> 8);
    payload += static_cast<char>(close_->code & 0xff);
    payload += close_->reason;
  }
  codec_.write(in_flight_, {.opcode = Opcode::close}, bytes_of(payload));
  close_is_written_ = true;
}

void Session::fill() {
  if (close_is_written_) return;
  if (close_now_) {
    queue_.clear();
    queued_ = 0;
    append_close();
    return;
  }
  if (pong_) codec_.write(in_flight_, {.opcode = Opcode::pong}, bytes_of(*pong_));
  pong_.reset();
  if (std::exchange(ping_, false)) codec_.write(in_flight_, {.opcode = Opcode::ping}, {});
  fill_from_queue();
  if (queue_.empty() && close_) append_close();
}

Task<Result<void>> Session::write_some() {
  net::Part part(std::string_view(in_flight_).substr(in_flight_written_));
  std::span<const net::Part> parts(&part, 1);
  milliseconds wait = close_is_written_ ? std::min(limits_.write_timeout, limits_.close_timeout)
                                        : limits_.write_timeout;
  Result<std::size_t> count = co_await transport_.write_some_within(wait, parts);
  if (!count) {
    bool is_late = count.error() == std::errc::timed_out;
    co_return std::unexpected(is_late ? make_error_code(Error::write_timeout) : count.error());
  }
  in_flight_written_ += *count;
  co_return {};
}

Task<void> Session::write_loop() {
  // Cancelled: nobody is left to write, and whoever waits for that, shielded, must hear of it.
  struct Leaves {
    Session& session;
    bool is_done = false;
    explicit Leaves(Session& of) : session(of) {}
    Leaves(const Leaves&) = delete;
    Leaves& operator=(const Leaves&) = delete;
    ~Leaves() {
      if (!is_done) session.lose(make_error_code(std::errc::operation_canceled));
    }
  } leaves(*this);
  while (!is_broken_) {
    if (in_flight_written_ == in_flight_.size()) {
      in_flight_.clear();
      in_flight_written_ = 0;
      if (in_flight_.capacity() > kKeptBytesMax && queue_.empty()) in_flight_.shrink_to_fit();
      fill();
      room_.unpark_all();
    }
    if (!in_flight_.empty()) {
      Result<void> written = co_await write_some();
      if (!written) lose(written.error());
    } else if (close_is_written_) {
      drained_.unpark_all();
      break;
    } else {
      drained_.unpark_all();
      codec_.rest();
      co_await work_.park();
    }
  }
  if (!is_broken_ && !end_) {
    auto in_time = co_await timeout(limits_.close_timeout, ended_.wait());
    if (!in_time && !end_) lose(make_error_code(Error::close_timeout));
  }
  leaves.is_done = true;
}

}  // namespace detail

}  // namespace weft::inline v0::ws
