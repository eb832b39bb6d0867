// SPDX-License-Identifier: MIT
#pragma once
// ClientExchange: a response and what it still has to do with a connection.
#include <memory>
#include <system_error>
#include <utility>

#include "pool.h"
#include "weft/http/client.h"

namespace weft::inline v0::http::detail {

class ClientExchange final : public BodySource {
 public:
  ClientExchange(Lease lease, Url url, std::uint64_t body_bytes_max) : url_(std::move(url)) {
    lease_ = std::move(lease);
    lease_.connection()->take_head(head_);
    headers_ = Headers(head_.fields);
    body_.reset(*this, head_.length, body_bytes_max);
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

  Task<Result<std::size_t>> read_body(std::span<std::byte> buffer) override {
    if (error_) co_return std::unexpected(error_);
    if (!lease_ || buffer.empty()) co_return 0;
    Result<std::size_t> count = co_await lease_.connection()->read_body(buffer);
    if (!count) {
      error_ = count.error();
      lease_.end();
    } else {
      let_go();
    }
    co_return count;
  }

 private:
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
};

}  // namespace weft::inline v0::http::detail
