// SPDX-License-Identifier: MIT
#pragma once
// weft::http::detail::TransportStream: a Transport as a net::Stream, so that TLS can go through it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/ok.h"
#include "weft/core/task.h"
#include "weft/http/transport.h"
#include "weft/io/pooled_bytes.h"
#include "weft/net/stream.h"

namespace weft::inline v0::http::detail {

class TransportStream {
 public:
  explicit TransportStream(std::unique_ptr<Transport> transport) noexcept
      : transport_(std::move(transport)) {}

  Task<Result<PooledBytes>> read_pooled() { return transport_->read(); }
  // What does not fit into `buffer` is kept for the next call.
  Task<Result<std::size_t>> read_some(std::span<std::byte> buffer) {
    if (rest_.empty()) {
      lent_ = co_await ok(transport_->read());
      rest_ = lent_;
    }
    std::size_t count = std::min(buffer.size(), rest_.size());
    std::copy_n(rest_.begin(), count, buffer.begin());
    rest_ = rest_.subspan(count);
    co_return count;
  }
  Task<Result<std::size_t>> write_some(std::span<const std::byte> bytes) {
    std::array<net::Part, 1> one{net::Part(bytes)};
    co_return co_await transport_->write_some(one);
  }
  Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) {
    return transport_->write_some(parts);
  }
  [[nodiscard]] std::size_t try_write(std::span<const std::byte> bytes) noexcept {
    return transport_->try_write(bytes);
  }
  Task<Result<void>> shutdown_write() { return transport_->shutdown_write(); }
  void close() noexcept { transport_->close(); }
  [[nodiscard]] bool is_quiet() noexcept { return rest_.empty() && transport_->is_quiet(); }

 private:
  std::unique_ptr<Transport> transport_;
  PooledBytes lent_;
  std::span<const std::byte> rest_;
};
static_assert(net::Stream<TransportStream>);

}  // namespace weft::inline v0::http::detail
