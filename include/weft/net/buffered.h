// SPDX-License-Identifier: MIT
#pragma once
// weft::net::BufferedReader, BufferedWriter: a Stream by the line, and by the buffer.
//
//     BufferedReader reader(stream);
//     auto line = co_await ok(reader.read_until("\r\n"));      // in the reader's own buffer, with its end
//     reader.consume(line.size());
//     std::span<std::byte> rest = body;                         // then as many bytes as the line said
//     co_await ok(reader.read_exactly(rest));                  // `rest`, the caller's cursor, is what is missing at any time
//
//     BufferedWriter writer(stream);
//     co_await ok(writer.write(header));
//     co_await ok(writer.flush());
//
// Cancellation   a cancel point where the stream is asked. What was read stays in the reader until consume(); what
//                was not written stays in the writer: after a cancel both go on where they were. read_until() takes nothing out,
//                so the same call again finds the same line; read_exactly() advances `rest` before it waits.
// Errors         as the stream's; Error::unexpected_end, Error::too_long.
// Allocation     the buffer, at the first use; a frame per operation.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/base/result.h"
#include "weft/core/ok.h"
#include "weft/core/task.h"
#include "weft/net/error.h"
#include "weft/net/stream.h"

namespace weft::inline v0::net {

inline constexpr std::size_t kBufferedBytes = 16 * 1024;

namespace detail {

// Bytes that were put in and not taken out, in one piece.
//
// Invariants
//   I1  first_ <= last_ <= size; the bytes are those between.
//   I2  first_ == last_ only if both are 0.
class ByteBuffer {
 public:
  explicit ByteBuffer(std::size_t bytes_max) noexcept : size_(bytes_max) {}

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {memory_.get() + first_, last_ - first_};
  }
  [[nodiscard]] std::size_t size() const noexcept { return last_ - first_; }
  [[nodiscard]] std::size_t bytes_max() const noexcept { return size_; }
  // Where more can be put: empty only if it is full.
  [[nodiscard]] std::span<std::byte> room() {
    if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(size_);
    if (last_ == size_ && first_ > 0) {
      std::memmove(memory_.get(), memory_.get() + first_, size());
      last_ -= first_;
      first_ = 0;
    }
    return {memory_.get() + last_, size_ - last_};
  }
  void put(std::size_t count) noexcept { last_ += count; }
  void take(std::size_t count) noexcept {
    first_ += count;
    if (first_ == last_) first_ = last_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

}  // namespace detail

template <Stream S>
class BufferedReader {
 public:
  explicit BufferedReader(S& stream, std::size_t bytes_max = kBufferedBytes)
      : stream_(stream), buffer_(bytes_max) {}

  // What was read and not consumed. Good until the next call.
  [[nodiscard]] std::span<const std::byte> buffered() const noexcept { return buffer_.bytes(); }
  // Requires: there are as many.
  void consume(std::size_t count) noexcept {
    WEFT_ASSERT(count <= buffer_.size(), "BufferedReader::consume() of more than is there");
    buffer_.take(count);
  }

  // Reads more. Returns: how many bytes; 0: the end. Error::too_long: there is no room for more.
  [[nodiscard]] Task<Result<std::size_t>> fill() {
    std::span<std::byte> room = buffer_.room();
    if (room.empty()) co_return std::unexpected(make_error_code(Error::too_long));
    std::size_t count = co_await ok(stream_.read_some(room));
    buffer_.put(count);
    co_return count;
  }

  // Reads until `delimiter`, which is not empty, is there. Returns: all up to its end, still in the buffer: consume() it. Good until the
  // next call. Error::too_long: the buffer is full without it. unexpected_end: so is the stream, and what came before
  // is in buffered().
  [[nodiscard]] Task<Result<std::span<const std::byte>>> read_until(std::string_view delimiter) {
    std::size_t looked_at = 0;
    while (true) {
      std::string_view text(reinterpret_cast<const char*>(buffered().data()), buffered().size());
      if (std::size_t at = text.find(delimiter, looked_at); at != text.npos) {
        co_return buffered().first(at + delimiter.size());
      }
      // The end of what was looked at may be the beginning of it.
      looked_at = text.size() - std::min(text.size(), delimiter.size() - 1);
      std::size_t count = co_await ok(fill());
      if (count == 0) co_return std::unexpected(make_error_code(Error::unexpected_end));
    }
  }

  // Fills `rest`, and advances it meanwhile: first with what is buffered. unexpected_end: what came before it is in the part that was
  // filled. What is read ahead of it stays buffered.
  [[nodiscard]] Task<Result<void>> read_exactly(std::span<std::byte>& rest) {
    while (true) {
      rest = rest.subspan(take_into(rest));
      if (rest.empty()) co_return {};
      std::size_t count = 0;
      if (rest.size() < buffer_.bytes_max()) {
        count = co_await ok(fill());  // ahead, or each few bytes would be a system call
      } else {
        count = co_await ok(stream_.read_some(rest));
        rest = rest.subspan(count);
      }
      if (count == 0) co_return std::unexpected(make_error_code(Error::unexpected_end));
    }
  }
  // Without a cursor: who is cancelled then does not learn how far it went.
  [[nodiscard]] Task<Result<void>> read_exactly(std::span<std::byte>&& buffer) {
    return read_into(buffer);
  }

  // Up to buffer.size() bytes, first those that are buffered. Returns: how many; 0: the end.
  [[nodiscard]] Task<Result<std::size_t>> read_some(std::span<std::byte> buffer) {
    if (buffer_.size() == 0) co_return co_await stream_.read_some(buffer);
    co_return take_into(buffer);
  }

 private:
  std::size_t take_into(std::span<std::byte> room) noexcept {
    std::size_t count = std::min(room.size(), buffer_.size());
    if (count == 0) return 0;
    std::memcpy(room.data(), buffered().data(), count);
    buffer_.take(count);
    return count;
  }
  Task<Result<void>> read_into(std::span<std::byte> rest) { co_return co_await read_exactly(rest); }

  S& stream_;
  detail::ByteBuffer buffer_;
};

template <Stream S>
class BufferedWriter {
 public:
  explicit BufferedWriter(S& stream, std::size_t bytes_max = kBufferedBytes)
      : stream_(stream), buffer_(bytes_max) {}
  // Requires: flush() before the end, or what is left is lost.

  // Bytes that were taken and not written yet.
  [[nodiscard]] std::size_t pending() const noexcept { return buffer_.size(); }

  // Takes `rest`, and advances it meanwhile; writes when the buffer is full.
  [[nodiscard]] Task<Result<void>> write(std::span<const std::byte>& rest) {
    while (!rest.empty()) {
      std::span<std::byte> room = buffer_.room();
      if (room.empty()) {
        co_await ok(write_some());
        continue;
      }
      std::size_t count = std::min(room.size(), rest.size());
      std::memcpy(room.data(), rest.data(), count);
      buffer_.put(count);
      rest = rest.subspan(count);
    }
    co_return {};
  }
  [[nodiscard]] Task<Result<void>> write(std::span<const std::byte>&& bytes) {
    return write_copy(bytes);
  }
  [[nodiscard]] Task<Result<void>> write(std::string_view text) {
    return write_copy(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] Task<Result<void>> flush() {
    while (buffer_.size() > 0) co_await ok(write_some());
    co_return {};
  }

 private:
  Task<Result<void>> write_some() {
    std::size_t count = co_await ok(stream_.write_some(buffer_.bytes()));
    buffer_.take(count);
    co_return {};
  }
  Task<Result<void>> write_copy(std::span<const std::byte> rest) { co_return co_await write(rest); }

  S& stream_;
  detail::ByteBuffer buffer_;
};

}  // namespace weft::inline v0::net
