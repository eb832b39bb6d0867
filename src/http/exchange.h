// SPDX-License-Identifier: MIT
#pragma once
// ClientExchange: a response and what it still has to do with a connection.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <system_error>
#include <utility>

#include "decoder.h"
#include "pool.h"
#include "weft/http/client.h"

namespace weft::inline v0::http::detail {

class ClientExchange final : public BodySource {
 public:
  // `decodes`: what it can be decoded from was asked for.
  ClientExchange(Lease lease, Url url, const ClientLimits& limits, bool decodes)
      : url_(std::move(url)), expansion_max_(limits.expansion_max) {
    lease_ = std::move(lease);
    lease_.connection()->take_head(head_);
    if (decodes && !lease_.connection()->response_is_read()) begin_decoding();
    headers_ = Headers(head_.fields);
    body_.reset(*this, head_.length, limits.body_bytes_max);
    if (head_.status != 101) let_go();
  }

  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }
  [[nodiscard]] const Headers& headers() const noexcept { return headers_; }
  [[nodiscard]] const Url& url() const noexcept { return url_; }
  [[nodiscard]] Body& body() noexcept { return body_; }
  [[nodiscard]] bool has_connection() const noexcept { return static_cast<bool>(lease_); }
  [[nodiscard]] ClientResponse::Upgraded release() {
    ClientResponse::Upgraded upgraded = lease_.connection()->release();
    lease_.end();
    return upgraded;
  }

  // From now on the body is as it was sent.
  void stop_decoding() noexcept { coded_.reset(); }

  Task<Result<std::size_t>> read_body(std::span<std::byte> buffer) override {
    if (error_) co_return std::unexpected(error_);
    if (buffer.empty()) co_return 0;
    if (coded_) co_return co_await read_decoded(buffer);
    co_return co_await read_sent(buffer);
  }

 private:
  // A body that is decoded, and what has come of it.
  struct Coded {
    explicit Coded(Coding coding) : decoder(make_decoder(coding)) {}

    std::unique_ptr<Decoder> decoder;
    std::array<std::byte, 16 * 1024> bytes;
    std::span<const std::byte> next;  // of bytes: not decoded yet
    std::uint64_t sent = 0, made = 0;
    std::uint64_t barren = 0;  // of sent: since something was made of it
  };
  // So much is nobody's bomb: small answers are often the same thing again and again.
  static constexpr std::uint64_t kExpansionFreeBytes = 1024 * 1024;
  // And so much that nothing comes out of is nobody's body.
  static constexpr std::uint64_t kBarrenBytesMax = 256 * 1024;

  void begin_decoding() {
    auto is_named = [](std::string_view name) {
      return [name](const Header& field) { return equal_ignoring_case(field.name, name); };
    };
    auto is_coding = is_named("content-encoding");
    if (std::ranges::count_if(head_.fields, is_coding) != 1) return;
    std::optional<Coding> coding = coding_of(std::ranges::find_if(head_.fields, is_coding)->value);
    if (!coding || *coding == Coding::identity) return;
    coded_ = std::make_unique<Coded>(*coding);
    std::erase_if(head_.fields, is_coding);
    std::erase_if(head_.fields, is_named("content-length"));
    head_.length.reset();
  }

  // As it was sent.
  Task<Result<std::size_t>> read_sent(std::span<std::byte> buffer) {
    if (!lease_) co_return 0;
    Result<std::size_t> count = co_await lease_.connection()->read_body(buffer);
    if (!count) {
      fail(count.error());
    } else {
      let_go();
    }
    co_return count;
  }
  // Decodes what is there before it reads more: an event that has come is not kept waiting for the next one.
  Task<Result<std::size_t>> read_decoded(std::span<std::byte> buffer) {
    while (true) {
      Decoder::Step step = coded_->decoder->decode(coded_->next, buffer);
      coded_->next = coded_->next.subspan(step.taken);
      coded_->made += step.made;
      if (step.is_bad) co_return fail(make_error_code(Error::bad_coding));
      // The smaller side is divided: the product could overflow.
      if (coded_->made > kExpansionFreeBytes &&
          (coded_->made - kExpansionFreeBytes) / std::max<std::uint64_t>(1, coded_->sent) >=
              expansion_max_) {
        co_return fail(make_error_code(Error::expanded_too_much));
      }
      if (step.made > 0) {
        coded_->barren = 0;
        co_return step.made;
      }
      if (!coded_->next.empty()) continue;
      Result<std::size_t> count = co_await read_sent(coded_->bytes);
      if (!count) co_return count;
      coded_->next = std::span(coded_->bytes).first(*count);
      coded_->sent += *count;
      coded_->barren += *count;
      if (coded_->barren > kBarrenBytesMax) co_return fail(make_error_code(Error::bad_coding));
      if (*count > 0) continue;
      // Nothing at all is nothing decoded, too.
      if (coded_->sent > 0 && !coded_->decoder->is_whole()) {
        co_return fail(make_error_code(Error::bad_coding));
      }
      co_return 0;
    }
  }
  std::unexpected<std::error_code> fail(std::error_code error) noexcept {
    error_ = error;
    lease_.end();
    return std::unexpected(error);
  }
  // The connection is the next one's as soon as the response is read.
  void let_go() noexcept {
    if (lease_.connection()->response_is_read()) lease_.end();
  }

  Url url_;
  ResponseHead head_;
  Headers headers_;
  Body body_;
  Lease lease_;
  std::error_code error_;
  std::unique_ptr<Coded> coded_;  // none: the body is as it was sent
  std::uint64_t expansion_max_;
};

}  // namespace weft::inline v0::http::detail
