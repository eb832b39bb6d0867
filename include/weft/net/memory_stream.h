// SPDX-License-Identifier: MIT
#pragma once
// weft::net::MemoryStream: a connection without a kernel, both ends on one loop. A Stream.
//
//     auto [client, server] = memory_streams({.bytes_max = 4096});
//
// For tests of a protocol, and for parts of a program that speak one to each other. With read_bytes_max it hands
// over what it has in pieces: a parser that is right about torn input is right about any.
//
// Threads        both ends on one loop.
// Cancellation   a cancel point where it waits. A cancelled operation took nothing.
// Errors         write_some() to an end that is closed: std::errc::broken_pipe. On an end that was closed itself:
//                bad_file_descriptor. A second reader or writer: UsageError.
// Closing        the other end reads what is there, then the end.
// Allocation     one block, and bytes_max of memory, for both ends; a frame per operation.
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"

namespace weft::inline v0::net {

struct MemoryStreamOptions {
  std::size_t bytes_max = 64 * 1024;  // on the way in one direction; then write_some() waits. Not 0
  std::size_t read_bytes_max = static_cast<std::size_t>(-1);   // of one read_some(). Not 0
  std::size_t write_bytes_max = static_cast<std::size_t>(-1);  // of one write_some(). Not 0
};

namespace detail {
class MemoryPipe;
}

class [[nodiscard]] MemoryStream {
 public:
  MemoryStream() noexcept = default;
  MemoryStream(MemoryStream&&) noexcept = default;
  MemoryStream& operator=(MemoryStream&& other) noexcept {
    close();
    in_ = std::move(other.in_);
    out_ = std::move(other.out_);
    return *this;
  }
  ~MemoryStream() { close(); }

  [[nodiscard]] Task<Result<std::size_t>> read_some(std::span<std::byte> buffer);
  [[nodiscard]] Task<Result<std::size_t>> write_some(std::span<const std::byte> bytes);
  [[nodiscard]] Task<Result<std::size_t>> write_some(std::span<const Part> parts);
  [[nodiscard]] Task<Result<void>> shutdown_write();
  void close() noexcept;

 private:
  friend std::pair<MemoryStream, MemoryStream> memory_streams(MemoryStreamOptions options);
  MemoryStream(std::shared_ptr<detail::MemoryPipe> in,
               std::shared_ptr<detail::MemoryPipe> out) noexcept
      : in_(std::move(in)), out_(std::move(out)) {}

  std::shared_ptr<detail::MemoryPipe> in_, out_;
};
static_assert(Stream<MemoryStream>);

[[nodiscard]] std::pair<MemoryStream, MemoryStream> memory_streams(
    MemoryStreamOptions options = {});

}  // namespace weft::inline v0::net
