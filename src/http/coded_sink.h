// SPDX-License-Identifier: MIT
#pragma once
// CodedSink: between a Response and its connection, and compresses what passes.
//
// Invariants
//   K1  the decision whether and how is made once, when the head is known to be complete: at the first write, or after the handler.
//       A write that is cancelled before it has its turn has decided nothing.
//   K2  what the encoder has made is in made_ until the connection has taken it: a write that is cancelled loses nothing.
//   K3  one task at a time is with the encoder and made_ (turn_).
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "encoder.h"
#include "weft/http/compression.h"
#include "weft/http/request.h"
#include "weft/http/response.h"
#include "weft/sync/local_mutex.h"

namespace weft::inline v0::http::detail {

class CodedSink final : private ResponseSink {
 public:
  // Takes the place of the response's sink for as long as it lives.
  CodedSink(const Request& request, Response& response, const CompressionOptions& options)
      : request_(request), response_(response), options_(options), inner_(response.divert(*this)) {}
  CodedSink(const CodedSink&) = delete;
  CodedSink& operator=(const CodedSink&) = delete;
  // What the encoder still has is lost if finish() has not ended: the answer is not whole then.
  ~CodedSink() {
    response_.divert(inner_);
    if (encoder_ && !is_finished_ && response_.has_begun()) inner_.break_off();
  }

  // The handler has returned.
  Task<void> finish();

 private:
  Task<Result<void>> write_body(Response& response, std::span<const std::byte> bytes) override;
  Task<Result<void>> write_file(Response& response, Descriptor& file, FileRange range) override;
  Task<Result<void>> flush(Response& response) override;
  void break_off() noexcept override { inner_.break_off(); }

  // `length`: of the body; nothing: not known.
  [[nodiscard]] Coding choose(std::optional<std::uint64_t> length);
  void mark(Coding coding);
  void begin(std::optional<std::uint64_t> length);
  [[nodiscard]] bool is_head() const noexcept { return request_.method() == Method::head; }
  [[nodiscard]] bool is_coded() const noexcept { return coding_ != Coding::identity; }
  Task<Result<void>> pass_on();
  Task<Result<void>> encode(std::span<const std::byte> bytes);
  Task<void> encode_whole();
  // Whether so many bytes are what content_length() promised, or fewer; if not, it is logged, and the answer broken off.
  [[nodiscard]] bool keeps_its_length(bool is_all);

  const Request& request_;
  Response& response_;
  const CompressionOptions& options_;
  ResponseSink& inner_;
  Coding coding_ = Coding::identity;
  std::unique_ptr<Encoder> encoder_;  // if it is coded, and there is a body
  std::string made_;
  std::optional<std::uint64_t> promised_;  // content_length(), which is not that of what is sent
  std::uint64_t given_ = 0;                // of the body, as the handler wrote it
  LocalMutex turn_{"http encoder"};
  bool is_decided_ = false;
  bool is_finished_ = false;
  bool holds_back_ = false;  // the encoder may have something that it has not given out
};

}  // namespace weft::inline v0::http::detail
