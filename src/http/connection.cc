// SPDX-License-Identifier: MIT
#include "connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "append.h"
#include "authority.h"
#include "peer_left.h"
#include "read_at.h"
#include "weft/base/log.h"
#include "weft/base/steady_clock.h"
#include "weft/core/ok.h"
#include "weft/core/primitives.h"
#include "weft/http/error.h"
#include "weft/net/error.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http::detail {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A piece of a body that is not copied into the output: it leaves from where it is.
constexpr std::size_t kCopiedMax = 16 * 1024;

class Digits {
 public:
  explicit Digits(std::uint64_t number, int base = 10) noexcept
      : end_(std::to_chars(digits_, digits_ + sizeof digits_, number, base).ptr) {}
  operator std::string_view() const noexcept { return {digits_, end_}; }

 private:
  char digits_[20];
  char* end_;
};

void append_chunk_size(std::string& text, std::size_t bytes) {
  append(text, Digits(bytes, 16), "\r\n");
}

std::string describe(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

// What an error of the body means for the peer, if the handler lets it through.
int status_of(const std::error_code& error) noexcept {
  if (error == Error::body_too_large) return 413;
  if (error == Error::body_timeout) return 408;
  if (error == Error::bad_body) return 400;
  // RFC 9112, 8: incomplete. Who has left will not read it, but it is not the handler's failure.
  if (peer_left(error)) return 400;
  return 500;
}

// `own`: what this request's body has ended with. The same error from elsewhere, an upstream's say, is the handler's.
int status_of(std::exception_ptr error, const std::error_code& own) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::system_error& known) {
    return known.code() == own ? status_of(own) : 500;
  } catch (...) {
    return 500;
  }
}

}  // namespace

Http1Connection::Http1Connection(Server& server, Transport& transport)
    : server_(server),
      transport_(transport),
      parser_(MessageParser::Kind::request,
              {.target_bytes_max = server.options().limits.target_bytes_max,
               .bytes_max = server.options().limits.head_bytes_max,
               .fields_max = server.options().limits.header_fields_max}) {}

void Http1Connection::stop() noexcept {
  is_stopping_ = true;
  if (waits_for_request_) {
    transport_.say_goodbye();
    transport_.close();
  }
  if (tell_stop_) tell_stop_();
}

// This is what an idle connection consists of: what it does not need while it waits is in frames of its own (H5).
Task<void> Http1Connection::run() {
  Overtaken::Disarms disarms(overtaken_);
  After after = After::next;
  while (after == After::next) {
    Stop stop = Stop::more;
    if (!input_.next().empty()) {
      MessageParser::Step step = parser_.walk(input_.next());
      input_.take(step.taken);
      stop = step.stop;
    }
    if (stop == Stop::more) {
      overtaken_.disarm();
      if (has_output() && !write_now()) {
        if (Descriptor* socket = shared_wait()) {
          WrittenAndRead outcome = co_await write_and_read(
              *socket, begin_sending(), {limits().write_timeout, limits().idle_timeout}, *this);
          if (outcome.write_error) break;
          after = after_exchange(std::move(outcome));
          continue;
        }
        Result<void> written = co_await write_out();
        if (!written) break;
      }
      milliseconds timeout = prepare_wait();
      if (waits_for_request_ && is_stopping_) {
        after = After::
            linger;  // the next request may be on its way, and a reset would overtake our last answer
        continue;
      }
      Result<PooledBytes> more = co_await transport_.read_within(timeout);
      after = after_wait(std::move(more));
    } else if (stop == Stop::failed || !prepare(stop == Stop::head)) {
      refuse(parser_.failure(), parser_.failure_text());
      after = After::linger;
    } else {
      std::exception_ptr error;
      if (server_.requests_in_progress() >= limits().requests_in_progress_max) [[unlikely]] {
        shed();
      } else {
        Server::InProgress in_progress(server_);
        try {
          if (has_output()) overtaken_.arm();
          co_await server_.handler().handle_request(request_, response_, *this);
        } catch (...) {
          error = std::current_exception();
        }
        tell_stop_ = nullptr;
      }
      if (error) [[unlikely]]
        answer_error(std::move(error));
      if (answers_at_once()) {
        append_whole();
        after = response_.closes() ? After::close : After::next;
      } else {
        after = co_await finish_answer();
      }
      note_access(request_.method_name(), request_.target());
      parser_.begin();
      input_.release();
      head_began_ns_ = 0;
    }
  }
  overtaken_.disarm();
  if (after != After::next) co_await end(after == After::linger);
  transport_.close();
}

// --- Reading ----------------------------------------------------------------------------------------

// Returns: how long.
milliseconds Http1Connection::prepare_wait() {
  waits_for_request_ = !parser_.has_begun();
  if (waits_for_request_) {
    rest();
    return limits().idle_timeout;
  }
  std::int64_t now = weft::detail::steady_ns();
  if (head_began_ns_ == 0) head_began_ns_ = now;  // behind another request, in one buffer with it
  auto spent = std::chrono::duration_cast<milliseconds>(nanoseconds(now - head_began_ns_));
  return std::max(limits().head_timeout - spent, milliseconds(0));
}

// H5. Requires: all answers have left.
void Http1Connection::rest() noexcept {
  input_.release();
  input_.rest();
  sent_ = 0;
  sending_.clear();
  if (out_.capacity() < sending_.capacity()) out_.swap(sending_);
  if (sending_.capacity() > std::string().capacity()) std::string().swap(sending_);
  Workspace none;
  bool is_worth_it =
      out_.capacity() > std::string().capacity() && out_.capacity() <= Workspaces::kOutputBytesMax;
  Workspace* kept = is_worth_it ? server_.workspaces().give_back() : nullptr;
  if (!kept) kept = &none;
  out_.swap(kept->output);
  response_.rest(kept->lines);
  parser_.rest(kept->fields);
}

void Http1Connection::work() noexcept {
  Workspace* kept = server_.workspaces().take();
  if (!kept) return;
  out_.swap(kept->output);
  response_.work(kept->lines);
  parser_.work(kept->fields);
}

Http1Connection::After Http1Connection::after_wait(Result<PooledBytes> more) {
  bool was_idle = std::exchange(waits_for_request_, false);
  if (was_idle && is_stopping_)
    return After::close;  // whatever has come: stop() has closed the transport
  if (more && !more->empty()) {
    if (was_idle) {
      // Exact where it is told.
      head_began_ns_ = server_.options().access_log ? weft::detail::steady_ns()
                                                    : weft::detail::coarse_steady_ns();
      work();
    }
    input_.add(std::move(*more), parser_, false);
    return After::next;
  }
  if (!was_idle && !more && more.error() == std::errc::timed_out) {
    refuse(408, "the head did not come in time");
    return After::linger;
  }
  return After::close;
}

// Returns: false if the request is to be refused.
bool Http1Connection::prepare(bool has_body) {
  // It may last as long as the connection. Before anybody has a view of it.
  if (parser_.wants_upgrade() && !has_body) input_.keep(parser_);
  Headers headers(parser_.fields());
  std::string_view host;
  std::size_t hosts = 0;
  bool expects = false;
  for (const Header& field : headers) {
    if (equal_ignoring_case(field.name, "host")) {
      host = field.value;
      ++hosts;
    } else if (equal_ignoring_case(field.name, "expect")) {
      if (!equal_ignoring_case(field.value, "100-continue")) {
        return parser_.refuse(417, "the only expectation is 100-continue");
      }
      expects = true;
    }
  }
  bool is_1_1 = parser_.minor_version() == 1;
  // RFC 9110, 7.2: an empty one is of a target that has no host.
  if (hosts > 1 || (hosts == 0 && is_1_1) || (!host.empty() && !is_authority(host))) {
    return parser_.refuse(400, "there is not exactly one host, or it is malformed");
  }
  if (parser_.method() == Method::connect) {
    return parser_.refuse(501, "this server is no proxy for CONNECT");
  }

  ++requests_;
  message_is_read_ = !has_body;
  expects_continue_ = expects && is_1_1 && has_body;
  body_written_ = 0;
  body_pace_ = write_pace_ = Pace();
  body_error_.clear();
  is_chunked_ = false;
  peer_goes_on_ = parser_.keeps_alive();
  body_.reset(*this, has_body ? parser_.content_length() : 0, limits().body_bytes_max);
  response_.reset(*this);
  if (!parser_.keeps_alive() || is_stopping_ || requests_ >= limits().requests_max) {
    response_.close_after();
  }
  RequestBuilder::Target target =
      RequestBuilder::build(request_,
                            {.method = parser_.method(),
                             .version = is_1_1 ? Version::http_1_1 : Version::http_1_0,
                             .method_name = parser_.method_name(),
                             .target = parser_.target(),
                             .authority = host,
                             .headers = headers},
                            body_);
  if (target == RequestBuilder::Target::good) [[likely]]
    return true;
  if (target == RequestBuilder::Target::malformed) {
    return parser_.refuse(400, "the target is malformed");
  }
  return transport_.is_encrypted() ||
         parser_.refuse(421, "an https resource is not answered for in the clear");
}

Task<Result<std::size_t>> Http1Connection::read_body(std::span<std::byte> buffer) {
  auto fail = [this](std::error_code error) {
    body_error_ = error;
    return std::unexpected(error);
  };
  if (is_upgraded_) co_return fail(make_error_code(Error::upgraded));
  if (body_error_) co_return std::unexpected(body_error_);
  if (buffer.empty()) co_return 0;
  if (body_.length().value_or(0) > body_.bytes_max()) {
    co_return fail(make_error_code(Error::body_too_large));
  }
  while (!message_is_read_) {
    if (input_.next().empty()) {
      if (std::exchange(expects_continue_, false) && !response_.has_begun()) {
        out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      }
      // The peer may wait for it. Unless another task writes already: then it is on its way.
      if (has_output() && !write_turn_.is_locked()) {
        Result<void> written = co_await write_out();
        if (!written) co_return fail(written.error());
      }
      Result<PooledBytes> more;
      {
        Pace::Waits waits(body_pace_);
        more = co_await transport_.read_within(body_patience());
      }
      if (!more && more.error() == std::errc::timed_out) {
        co_return fail(make_error_code(Error::body_timeout));
      }
      if (!more) co_return fail(more.error());
      if (more->empty()) co_return fail(make_error_code(net::Error::unexpected_end));
      input_.add(std::move(*more), parser_, true);
    }
    MessageParser::Step step = parser_.walk(input_.next().substr(0, buffer.size()), buffer);
    input_.take(step.taken);
    message_is_read_ = step.stop == Stop::message;
    body_pace_.moved(parser_.body_bytes());
    // In the order of the bytes: what was too much came before what is bad.
    if (body_pace_.bytes() > body_.bytes_max())
      co_return fail(make_error_code(Error::body_too_large));
    if (step.stop == Stop::failed) co_return fail(make_error_code(Error::bad_body));
    if (parser_.body_bytes() > 0) co_return parser_.body_bytes();
  }
  co_return 0;
}

// How long the next byte may take.
nanoseconds Http1Connection::body_patience() const noexcept {
  return body_pace_.patience({.silence = limits().body_timeout,
                              .rate_min = limits().body_rate_min,
                              .grace = limits().body_grace});
}

// H3. Returns: whether the next request can be read.
Task<bool> Http1Connection::skip_body() {
  if (message_is_read_) co_return true;
  if (body_error_ || expects_continue_) co_return false;
  body_.allow(body_pace_.bytes() + limits().unread_body_bytes);
  std::array<std::byte, 4096> dropped;
  while (true) {
    Result<std::size_t> count = co_await read_body(dropped);
    if (!count) co_return false;
    if (*count == 0) co_return true;
  }
}

// --- Answering --------------------------------------------------------------------------------------

void Http1Connection::Overtaken::arm() {
  if (std::exchange(is_armed_, true)) return;
  scope_ = &weft::detail::running_scope("an HTTP connection");
  alarm_.arm(now(), weft::detail::Continuation(*this));
}

// Without a task where the socket takes it at once.
void Http1Connection::Overtaken::wake() noexcept {
  is_armed_ = false;
  if (!connection_.has_output() || connection_.write_turn_.is_locked()) return;
  if (scope_->is_cancelled()) return;
  if (connection_.write_now()) return;
  try {
    writing_ = write().start(*scope_);  // what goes wrong is in write_error_
    is_starting_ = true;
  } catch (...) {
    return;  // no memory: then they leave later, if at all
  }
}

Task<Result<void>> Http1Connection::Overtaken::write() {
  is_starting_ = false;
  co_return co_await connection_.write_out();
}

// Limits::requests_in_progress_max: the answer is the server's own, and the connection goes on.
void Http1Connection::shed() {
  response_.status(503);
  Digits seconds(static_cast<std::uint64_t>(limits().retry_after.count()));
  response_.header("retry-after", seconds);
  response_.body("text/plain", std::string(reason_phrase(503)) + "\n");
}

void Http1Connection::answer_error(std::exception_ptr error) {
  int status = status_of(error, body_error_);
  if (status == 500) {
    log(LogLevel::error, "http: the handler of " + std::string(request_.method_name()) + " " +
                             std::string(request_.target()) + " threw: " + describe(error));
  }
  if (is_upgraded_) return;
  if (response_.has_begun()) {
    is_broken_ = true;
    return;
  }
  bool closes = response_.closes();
  response_.reset(*this);
  response_.status(status);
  response_.body("text/plain", std::string(reason_phrase(status)) + "\n");
  if (closes || status != 500) response_.close_after();
}

bool Http1Connection::answers_at_once() noexcept {
  return !response_.has_begun() && !is_broken_ && !response_.content_length() && message_is_read_ &&
         has_room() && response_.body().size() <= kCopiedMax;
}

Task<Http1Connection::After> Http1Connection::finish_answer() {
  if (is_upgraded_) {
    peer_goes_on_ = false;  // it speaks something else, and that has ended
    co_return After::close;
  }
  // The handler has left some of the body: what it wrote must not wait for that.
  if (!message_is_read_ && (body_error_ || expects_continue_)) response_.close_after();
  if (is_broken_ || (response_.has_begun() && !keeps_its_length(body_written_))) {
    // Nothing of it, and nothing after it, may look like an end (H4). What was answered before stays.
    if (response_.has_begun()) out_.resize(answer_at_);
    peer_goes_on_ = false;
    is_broken_ = true;
    co_return After::close;
  }
  if (response_.has_begun()) {
    if (is_chunked_) out_ += "0\r\n\r\n";
  } else if (request_.method() == Method::head && response_.content_length()) {
    append_head(response_.content_length());
  } else if (!keeps_its_length(response_.body().size())) {
    answer_error(std::make_exception_ptr(std::system_error(make_error_code(Error::wrong_length))));
    append_whole();
  } else if (response_.body().size() <= kCopiedMax) {
    append_whole();
  } else {
    std::string body = std::move(response_.body());
    append_head(body.size());
    std::span<const std::byte> bytes = std::as_bytes(std::span(body));
    Result<void> written = co_await write_large(bytes);
    if (!written) co_return After::close;
  }
  bool is_read = co_await skip_body();
  if (!has_room()) {
    Result<void> written = co_await write_out();
    if (!written) co_return After::close;
  }
  if (!is_read) co_return After::linger;
  co_return response_.closes() ? After::close : After::next;
}

// Whether so many bytes are what content_length() promised; if not, it is logged.
bool Http1Connection::keeps_its_length(std::uint64_t bytes) const {
  if (!response_.content_length() || !sends_body() || *response_.content_length() == bytes)
    return true;
  log(LogLevel::error, "http: the answer to " + std::string(request_.target()) + " has " +
                           std::to_string(bytes) + " bytes, and content_length() promised " +
                           std::to_string(*response_.content_length()));
  return false;
}

// An answer of the server's own, after which the connection ends.
void Http1Connection::refuse(int status, std::string_view why) {
  response_.reset(*this);
  response_.status(status);
  response_.close_after();
  std::string text(reason_phrase(status));
  text.append(": ").append(why).append("\n");
  response_.body("text/plain", std::move(text));
  is_chunked_ = false;
  // RFC 9110, 9.3.2: HEAD has no body here either. If it has come to its target, the method is known.
  bool is_head = !parser_.target().empty() && parser_.method() == Method::head;
  std::string_view body;
  if (!is_head) body = response_.body();
  append_head(response_.body().size(), body);
  body_written_ = body.size();
  note_access("-", "-");
}

// RFC 9110, 6.4.1.
bool Http1Connection::has_no_body() const noexcept {
  return response_.status() == 204 || response_.status() == 304;
}

// The head, and what follows it.
void Http1Connection::append_head(std::optional<std::uint64_t> length, std::string_view body) {
  if (is_stopping_) response_.close_after();
  answer_at_ = out_.size();
  response_.begin();
  std::string_view status_line = "HTTP/1.1 200 OK\r\n";
  std::string made;
  if (response_.status() != 200) [[unlikely]] {
    Digits status(static_cast<std::uint64_t>(response_.status()));
    append(made, "HTTP/1.1 ", status, " ", reason_phrase(response_.status()), "\r\n");
    status_line = made;
  }
  std::string_view date;
  if (!response_.find_header("date")) date = server_.date().now();
  std::string_view framing;
  Digits digits(length.value_or(0));
  std::string_view number;
  if (is_chunked_) {
    framing = "transfer-encoding: chunked";
  } else if (length && !has_no_body()) {
    framing = "content-length: ";
    number = digits;
  }
  std::string_view end = framing.empty() ? "\r\n" : "\r\n\r\n";
  if (response_.closes()) {
    end = framing.empty() ? "connection: close\r\n\r\n" : "\r\nconnection: close\r\n\r\n";
  } else if (request_.version() == Version::http_1_0) {
    end = framing.empty() ? "connection: keep-alive\r\n\r\n" : "\r\nconnection: keep-alive\r\n\r\n";
  }
  // RFC 9110, 7.8: who sends it says here that it is for this connection only.
  std::string with_upgrade;
  if (response_.find_header("upgrade")) [[unlikely]] {
    bool is_old = request_.version() == Version::http_1_0;
    std::string_view others = response_.closes() ? "close, " : is_old ? "keep-alive, " : "";
    std::string_view line = framing.empty() ? "connection: " : "\r\nconnection: ";
    append(with_upgrade, line, others, "upgrade\r\n\r\n");
    end = with_upgrade;
  }
  append(out_, status_line, response_.headers().lines(), date, framing, number, end, body);
}

void Http1Connection::append_whole() {
  std::string_view body;
  if (sends_body()) body = response_.body();
  append_head(response_.body().size(), body);
  body_written_ = body.size();
}

bool Http1Connection::sends_body() const noexcept {
  return !has_no_body() && request_.method() != Method::head;
}

// Whether so many bytes more are not too many.
Result<void> Http1Connection::check_body(std::uint64_t bytes) {
  if (response_.content_length() && *response_.content_length() - body_written_ < bytes) {
    is_broken_ = true;
    return std::unexpected(make_error_code(Error::wrong_length));
  }
  return {};
}

Result<void> Http1Connection::count_body(std::uint64_t bytes) {
  Result<void> checked = check_body(bytes);
  if (checked) body_written_ += bytes;
  return checked;
}

void Http1Connection::begin_stream() {
  if (response_.has_begun()) return;
  bool knows_chunks = request_.version() != Version::http_1_0;
  is_chunked_ = !response_.content_length() && knows_chunks && !has_no_body();
  // RFC 9112, 6.3: the end of the connection is the end of the body.
  if (!response_.content_length() && !knows_chunks) response_.close_after();
  append_head(response_.content_length());
  if (request_.method() == Method::head) is_chunked_ = false;
}

// Why nothing more can be written of this answer.
std::error_code Http1Connection::write_refusal() const noexcept {
  if (is_upgraded_) return make_error_code(Error::upgraded);
  if (write_error_) return write_error_;
  if (is_broken_) return make_error_code(Error::broken_off);
  return {};
}

Task<Result<void>> Http1Connection::write_body(Response&, std::span<const std::byte> bytes) {
  if (std::error_code refusal = write_refusal()) co_return std::unexpected(refusal);
  begin_stream();
  if (bytes.empty()) co_return {};
  if (bytes.size() > kCopiedMax) co_return co_await write_large(bytes);
  // Room first: who is cancelled while it waits has written nothing.
  if (!has_room()) co_await ok(write_out());
  if (Result<void> counted = count_body(bytes.size()); !counted) co_return counted;
  if (!sends_body()) co_return {};
  if (is_chunked_) append_chunk_size(out_, bytes.size());
  out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (is_chunked_) out_ += "\r\n";
  co_return {};
}

// From where it is. Who is cancelled in the middle has sent a part of it, and the answer is broken (H4).
Task<Result<void>> Http1Connection::write_large(std::span<const std::byte> bytes) {
  if (Result<void> counted = count_body(bytes.size()); !counted) co_return counted;
  if (!sends_body()) co_return {};
  Breaks breaks(is_broken_);
  Piece piece;
  if (is_chunked_) append_chunk_size(piece.before, bytes.size());
  piece.bytes = bytes;
  if (is_chunked_) piece.after = "\r\n";
  co_await ok(write_out(std::move(piece)));
  breaks.dismiss();
  co_return {};
}

Task<Result<void>> Http1Connection::write_file(Response& response, Descriptor& file,
                                               FileRange range) {
  if (std::error_code refusal = write_refusal()) co_return std::unexpected(refusal);
  if (!response.has_begun() && !response.content_length()) response.content_length(range.bytes);
  begin_stream();
  if (!response.content_length()) co_return co_await copy_file(file, range);  // in chunks
  if (Result<void> fits = check_body(range.bytes); !fits) co_return fits;     // nothing of it
  while (range.bytes > kCopiedMax && sends_body()) {
    co_await ok(write_out());
    LocalMutexGuard turn = co_await write_turn_.lock();
    Breaks breaks(is_broken_);
    Result<std::size_t> count;
    {
      Pace::Waits waits(write_pace_);
      count = co_await within(write_patience(), transport_.send_file(file, range));
    }
    write_pace_.moved(count.value_or(0));
    if (!count && count.error() == std::errc::not_supported) {
      breaks.dismiss();
      break;
    }
    if (!count) co_return std::unexpected(write_error_ = as_write_error(count.error()));
    if (*count == 0) co_return std::unexpected(make_error_code(Error::wrong_length));
    if (Result<void> counted = count_body(*count); !counted) co_return counted;
    breaks.dismiss();
    range.offset += *count;
    range.bytes -= *count;
  }
  co_return co_await copy_file(file, range);
}

// By way of our own memory.
Task<Result<void>> Http1Connection::copy_file(Descriptor& file, FileRange range) {
  constexpr std::size_t kPieceBytes = 64 * 1024;
  if (!sends_body()) co_return count_body(range.bytes);
  auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, range.bytes));
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(size);
  Breaks breaks(is_broken_);
  while (range.bytes > 0) {
    auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, range.bytes));
    std::span<std::byte> room(buffer.get(), wanted);
    std::size_t count = co_await ok(read_at(file, room, range.offset));
    if (count == 0) co_return std::unexpected(make_error_code(Error::wrong_length));
    std::span<const std::byte> piece = room.first(count);
    co_await ok(write_body(response_, piece));
    range.offset += count;
    range.bytes -= count;
  }
  breaks.dismiss();
  co_return {};
}

Task<Result<void>> Http1Connection::flush(Response&) {
  if (std::error_code refusal = write_refusal()) co_return std::unexpected(refusal);
  begin_stream();
  co_return co_await write_out();
}

void Http1Connection::note_access(std::string_view method, std::string_view target) {
  const auto& access_log = server_.options().access_log;
  if (!access_log) return;
  std::int64_t now = weft::detail::steady_ns();
  try {
    access_log({.peer = transport_.peer_address(),
                .method = method,
                .target = target,
                .version = request_.version(),
                .status = is_upgraded_ ? 101 : response_.status(),
                .body_bytes = body_written_,
                .duration = nanoseconds(head_began_ns_ == 0 ? 0 : now - head_began_ns_)});
  } catch (...) {
    log(LogLevel::error, "http: the access log threw: " + describe(std::current_exception()));
  }
}

// --- Connection -------------------------------------------------------------------------------------

Task<Result<Connection::Upgraded>> Http1Connection::upgrade(Response& response,
                                                            std::string_view protocol) {
  if (response.has_begun()) throw UsageError("Connection::upgrade() after the answer was begun");
  // RFC 9110, 7.8: not to a protocol that the client has not named.
  bool is_offered = parser_.wants_upgrade() && request_.headers().has_token("upgrade", protocol);
  if (!is_offered || !message_is_read_ || request_.version() == Version::http_1_0) {
    co_return std::unexpected(std::make_error_code(std::errc::not_supported));
  }
  HeaderLines upgrade;
  upgrade.add("connection", "upgrade");
  upgrade.add("upgrade", protocol);  // throws, if it is no such value
  response.begin();
  is_upgraded_ = true;
  out_.append("HTTP/1.1 101 Switching Protocols\r\n").append(upgrade.lines());
  out_.append(response.headers().lines()).append("\r\n");
  co_await ok(write_out());
  std::string().swap(sending_);  // nothing of ours is written any more
  sent_ = 0;
  std::span<const std::byte> rest = std::as_bytes(std::span(input_.next()));
  Upgraded upgraded;
  upgraded.transport = &transport_;
  upgraded.read_ahead.assign(rest.begin(), rest.end());
  input_.take(rest.size());
  co_return upgraded;
}

void Http1Connection::on_stop(std::function<void()> tell) {
  tell_stop_ = std::move(tell);
  if (is_stopping_ && tell_stop_) tell_stop_();
}

// The end of the peer's bytes is seen only by who reads them. One read, of what it would have brought anyhow.
Task<void> Http1Connection::until_peer_leaves() {
  if (is_watched_) throw UsageError("Connection::until_peer_leaves() is awaited already");
  if (message_is_read_ && !is_upgraded_ && input_.next().empty()) {
    struct Watched {
      bool& is_watched;
      explicit Watched(bool& flag) noexcept : is_watched(flag) { is_watched = true; }
      Watched(const Watched&) = delete;
      Watched& operator=(const Watched&) = delete;
      ~Watched() { is_watched = false; }
    } watched(is_watched_);
    Result<PooledBytes> more = co_await transport_.read();
    if (!more || more->empty()) co_return;
    input_.add(std::move(*more), parser_, true);
  }
  co_await suspend_forever();
}

}  // namespace weft::inline v0::http::detail
