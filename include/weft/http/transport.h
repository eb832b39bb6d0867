// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Transport: a net::Stream of any type, by virtual functions. StreamTransport<S> makes one of S.
//
// Threads, Cancellation, Errors: as the stream's.
// Allocation     a frame per read and per write; a buffer from the heap per read, if the stream lends none.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/ok.h"
#include "weft/core/task.h"
#include "weft/io/descriptor.h"
#include "weft/io/pooled_bytes.h"
#include "weft/net/address.h"
#include "weft/net/stream.h"

namespace weft::inline v0::http {

class Transport {
 public:
  virtual ~Transport() = default;

  // The next bytes. Empty: the end.
  [[nodiscard]] virtual Task<Result<PooledBytes>> read() = 0;
  [[nodiscard]] virtual Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) = 0;
  [[nodiscard]] virtual Task<Result<void>> shutdown_write() = 0;
  virtual void close() noexcept = 0;
  // Who is there. Nothing: it has no address.
  [[nodiscard]] virtual std::optional<net::Address> peer_address() const noexcept = 0;
  // Whether nobody between can read it.
  [[nodiscard]] virtual bool is_encrypted() const noexcept = 0;
  // Whether the peer has sent nothing that was not read, and has not closed: as far as can be told without waiting.
  [[nodiscard]] virtual bool is_quiet() noexcept { return true; }
};

namespace detail {
[[nodiscard]] bool is_quiet(const Descriptor& socket) noexcept;
}

template <net::Stream S>
class StreamTransport final : public Transport {
 public:
  explicit StreamTransport(S stream) noexcept : stream_(std::move(stream)) {}

  Task<Result<PooledBytes>> read() override {
    if constexpr (requires { stream_.read_pooled(); }) {
      co_return co_await stream_.read_pooled();
    } else {
      PooledBytes bytes = PooledBytes::allocate();
      std::size_t count = co_await ok(stream_.read_some(bytes.room()));
      bytes.set_size(count);
      co_return bytes;
    }
  }
  Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) override {
    co_return co_await stream_.write_some(parts);
  }
  Task<Result<void>> shutdown_write() override { co_return co_await stream_.shutdown_write(); }
  void close() noexcept override { stream_.close(); }
  std::optional<net::Address> peer_address() const noexcept override {
    if constexpr (requires {
                    { stream_.peer_address() } -> std::same_as<Result<net::Address>>;
                  }) {
      if (Result<net::Address> address = stream_.peer_address()) return *address;
    }
    return std::nullopt;
  }
  bool is_encrypted() const noexcept override {
    return requires { S::kEncrypted; };
  }

  bool is_quiet() noexcept override {
    if constexpr (requires {
                    { stream_.descriptor() } -> std::same_as<Descriptor&>;
                  }) {
      return http::detail::is_quiet(stream_.descriptor());
    } else {
      return true;
    }
  }

  [[nodiscard]] S& stream() noexcept { return stream_; }

 private:
  S stream_;
};

}  // namespace weft::inline v0::http
