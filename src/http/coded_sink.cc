// SPDX-License-Identifier: MIT
#include "coded_sink.h"

#include <algorithm>
#include <utility>

#include "read_at.h"
#include "weft/base/log.h"
#include "weft/core/ok.h"
#include "weft/core/primitives.h"
#include "weft/http/error.h"

namespace weft::inline v0::http::detail {

namespace {

// The encoder's work between two turns of the loop: half a millisecond, about.
constexpr std::size_t kPieceBytes = 16 * 1024;
// Of what the encoder has made: then it leaves.
constexpr std::size_t kMadeBytesMax = 16 * 1024;
// A write of so much is taken by the connection whole or, when it is cancelled, not at all.
constexpr std::size_t kTakenWholeMax = 16 * 1024;

bool has_body(int status) noexcept { return status != 204 && status != 304; }

void weaken_etag(Response& response) {
  std::optional<std::string_view> etag = response.find_header("etag");
  if (etag && etag->starts_with('"')) response.set_header("etag", "W/" + std::string(*etag));
}

// What compressing it would make untrue, or was done before.
bool is_final(const Response& response) {
  for (const Header& field : response.headers().fields()) {
    for (std::string_view name :
         {"content-encoding", "content-digest", "repr-digest", "digest", "content-md5"}) {
      if (equal_ignoring_case(field.name, name)) return true;
    }
    if (equal_ignoring_case(field.name, "cache-control") && has_token(field.value, "no-transform"))
      return true;
  }
  return false;
}

// Whoever does not get to the end of it has broken the answer.
class BreaksOff {
 public:
  explicit BreaksOff(ResponseSink& sink) noexcept : sink_(&sink) {}
  BreaksOff(const BreaksOff&) = delete;
  BreaksOff& operator=(const BreaksOff&) = delete;
  ~BreaksOff() {
    if (sink_) sink_->break_off();
  }
  void dismiss() noexcept { sink_ = nullptr; }

 private:
  ResponseSink* sink_;
};

}  // namespace

Coding CodedSink::choose(std::optional<std::uint64_t> length) {
  Acceptance accepts = acceptance_of(request_.headers());
  Coding coding = choose_coding(accepts, known_codings());
  if (is_final(response_)) return Coding::identity;
  if (response_.status() == 304) {
    // RFC 9110, 15.4.5: the fields that 200 would have.
    // Which of the two answers it is about, the client says by the tag that it has.
    vary_by_coding(response_);
    std::string weak = "W/" + std::string(response_.find_header("etag").value_or(""));
    std::string_view known = request_.headers().find("if-none-match").value_or("");
    if (known.contains(weak)) weaken_etag(response_);
    return Coding::identity;
  }
  bool must = accepts.refuses_identity();
  bool is_text = is_compressible(response_.find_header("content-type").value_or(""));
  if (!has_body(response_.status()) || (!is_text && !must)) return Coding::identity;
  vary_by_coding(response_);
  if (response_.status() == 206 || response_.find_header("content-range")) return Coding::identity;
  if (length == 0 || (length && *length < options_.bytes_min && !must)) return Coding::identity;
  return coding;
}

void CodedSink::mark(Coding coding) {
  response_.set_header("content-encoding", to_string(coding));
  response_.remove_header("accept-ranges");
  weaken_etag(response_);
  response_.clear_content_length();
}

void CodedSink::begin(std::optional<std::uint64_t> length) {
  if (std::exchange(is_decided_, true) || response_.has_begun()) return;
  Coding coding = choose(length);
  if (coding == Coding::identity) return;
  if (!is_head()) encoder_ = make_encoder(coding, options_);
  promised_ = response_.content_length();
  mark(coding);
  coding_ = coding;
}

// What was made goes on, from where it is: it stays there until it is taken (K2). Also the head, if there is nothing yet.
Task<Result<void>> CodedSink::pass_on() {
  do {
    std::span<const std::byte> bytes = std::as_bytes(std::span(made_));
    bytes = bytes.first(std::min(bytes.size(), kTakenWholeMax));
    co_await ok(inner_.write_body(response_, bytes));
    made_.erase(0, bytes.size());
  } while (!made_.empty());
  co_return {};
}

// Requires: the turn.
Task<Result<void>> CodedSink::encode(std::span<const std::byte> bytes) {
  // Room first, as the connection has it: who is cancelled while it waits has written nothing.
  if (made_.size() >= kMadeBytesMax || !response_.has_begun()) co_await ok(pass_on());
  given_ += bytes.size();
  if (!keeps_its_length(false)) co_return std::unexpected(make_error_code(Error::wrong_length));
  BreaksOff breaks(inner_);
  while (true) {
    std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    bytes = bytes.subspan(piece.size());
    encoder_->encode(piece, Encoder::After::nothing, made_);
    holds_back_ = true;
    if (bytes.empty()) break;
    if (made_.size() >= kMadeBytesMax) co_await ok(pass_on());
    co_await yield();
  }
  breaks.dismiss();
  co_return {};
}

Task<Result<void>> CodedSink::write_body(Response& response, std::span<const std::byte> bytes) {
  {
    // First: who is cancelled here has decided nothing (K1).
    LocalMutexGuard turn = co_await turn_.lock();
    begin(response.content_length());
    if (encoder_) co_return co_await encode(bytes);
  }
  std::span<const std::byte> sent = is_coded() ? std::span<const std::byte>() : bytes;
  co_return co_await inner_.write_body(response, sent);
}

Task<Result<void>> CodedSink::write_file(Response& response, Descriptor& file, FileRange range) {
  {
    LocalMutexGuard turn = co_await turn_.lock();
    begin(response.content_length().value_or(range.bytes));
    if (encoder_ && !response.has_begun()) co_await ok(pass_on());
  }
  if (!is_coded()) co_return co_await inner_.write_file(response, file, range);
  if (!encoder_) co_return co_await inner_.write_body(response, {});
  auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, range.bytes));
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(size);
  BreaksOff breaks(inner_);
  while (range.bytes > 0) {
    auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, range.bytes));
    std::span<std::byte> room(buffer.get(), wanted);
    std::size_t count = co_await ok(read_at(file, room, range.offset));
    if (count == 0) co_return std::unexpected(make_error_code(Error::wrong_length));
    std::span<const std::byte> piece = room.first(count);
    {
      LocalMutexGuard turn = co_await turn_.lock();
      co_await ok(encode(piece));
    }
    range.offset += count;
    range.bytes -= count;
    co_await yield();
  }
  breaks.dismiss();
  co_return {};
}

Task<Result<void>> CodedSink::flush(Response& response) {
  {
    LocalMutexGuard turn = co_await turn_.lock();
    begin(response.content_length());
    if (encoder_ && std::exchange(holds_back_, false)) {
      encoder_->encode({}, Encoder::After::flush, made_);
    }
    if (!made_.empty()) co_await ok(pass_on());
  }
  co_return co_await inner_.flush(response);
}

// A body that is filled in: its new length is known before its head leaves.
Task<void> CodedSink::encode_whole() {
  std::string& body = response_.body();
  std::optional<std::uint64_t> length = response_.content_length();
  // RFC 9110, 9.3.2: a handler may answer HEAD with the length only.
  if (is_head() && length && body.empty()) {
    begin(length);
    if (!is_coded()) co_return;
    Result<void> written = co_await inner_.write_body(response_, {});
    static_cast<void>(written);
    co_return;
  }
  if (length && *length != body.size()) co_return;  // the connection says so
  Coding coding = choose(body.size());
  if (coding == Coding::identity) co_return;
  std::unique_ptr<Encoder> encoder = make_encoder(coding, options_);
  std::string coded;
  std::span<const std::byte> bytes = std::as_bytes(std::span(body));
  while (bytes.size() > kPieceBytes) {
    encoder->encode(bytes.first(kPieceBytes), Encoder::After::nothing, coded);
    bytes = bytes.subspan(kPieceBytes);
    co_await yield();
  }
  encoder->encode(bytes, Encoder::After::end, coded);
  bool must = acceptance_of(request_.headers()).refuses_identity();
  if (coded.size() >= body.size() && !must) co_return;
  mark(coding);
  response_.body(std::move(coded));
}

Task<void> CodedSink::finish() {
  if (!response_.has_begun() && !is_decided_) co_return co_await encode_whole();
  if (!encoder_ || !keeps_its_length(true)) co_return;
  encoder_->encode({}, Encoder::After::end, made_);
  // If it does not leave, the connection knows.
  Result<void> written = co_await pass_on();
  is_finished_ = written.has_value();
}

bool CodedSink::keeps_its_length(bool is_all) {
  if (!promised_ || given_ == *promised_ || (!is_all && given_ < *promised_)) return true;
  log(LogLevel::error, "http: the answer to " + std::string(request_.target()) + " has " +
                           std::to_string(given_) + " bytes, and content_length() promised " +
                           std::to_string(*promised_));
  inner_.break_off();
  return false;
}

}  // namespace weft::inline v0::http::detail
