// SPDX-License-Identifier: MIT
#include "weft/net/memory_stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/core/errors.h"
#include "weft/core/primitives.h"
#include "weft/sync/parking_lot.h"

namespace weft::inline v0::net {

namespace detail {

// One direction: a ring of bytes.
class MemoryPipe {
 public:
  explicit MemoryPipe(const MemoryStreamOptions& options)
      : options_(options), ring_(options.bytes_max) {}

  // Each side is told by its own end that it has closed, and by the other that no more comes, or goes.
  void close_reader() noexcept { change(reader_closed_); }
  void close_writer() noexcept { change(writer_closed_); }
  void end() noexcept { change(ended_); }

  static Task<Result<std::size_t>> read(std::shared_ptr<MemoryPipe> pipe,
                                        std::span<std::byte> buffer) {
    Turn turn(pipe->reading_, "MemoryStream: a second task reads from it");
    co_await finish_if_cancelled();
    while (pipe->count_ == 0 && !pipe->ended_ && !pipe->reader_closed_ && !buffer.empty()) {
      co_await pipe->changed_.park();
    }
    if (pipe->reader_closed_)
      co_return std::unexpected(make_error_code(std::errc::bad_file_descriptor));
    co_return pipe->take(buffer.first(std::min(buffer.size(), pipe->options_.read_bytes_max)));
  }

  static Task<Result<std::size_t>> write(std::shared_ptr<MemoryPipe> pipe,
                                         std::span<const Part> parts) {
    Turn turn(pipe->writing_, "MemoryStream: a second task writes to it");
    co_await finish_if_cancelled();
    std::size_t bytes = 0;
    for (const Part& part : parts) bytes += part.size();
    while (bytes > 0 && pipe->count_ == pipe->ring_.size() && !pipe->gone()) {
      co_await pipe->changed_.park();
    }
    if (pipe->writer_closed_)
      co_return std::unexpected(make_error_code(std::errc::bad_file_descriptor));
    if (pipe->gone()) co_return std::unexpected(make_error_code(std::errc::broken_pipe));
    std::size_t room = std::min(pipe->ring_.size() - pipe->count_, pipe->options_.write_bytes_max);
    std::size_t written = 0;
    for (const Part& part : parts) {
      std::size_t count = std::min(part.size(), room - written);
      pipe->put(part.bytes().first(count));
      written += count;
    }
    co_return written;
  }

 private:
  // One task at a time.
  class Turn {
   public:
    Turn(bool& taken, const char* refusal) : taken_(taken) {
      if (taken) weft::detail::throw_usage_error(refusal);
      taken_ = true;
    }
    ~Turn() { taken_ = false; }

   private:
    bool& taken_;
  };

  [[nodiscard]] bool gone() const noexcept { return reader_closed_ || writer_closed_ || ended_; }
  void change(bool& what) noexcept {
    what = true;
    changed_.unpark_all();
  }

  std::size_t take(std::span<std::byte> buffer) {
    std::size_t count = std::min(buffer.size(), count_);
    for (std::size_t done = 0; done < count;) {
      std::size_t piece = std::min(count - done, ring_.size() - first_);
      std::memcpy(buffer.data() + done, ring_.data() + first_, piece);
      first_ = (first_ + piece) % ring_.size();
      done += piece;
    }
    count_ -= count;
    if (count > 0) changed_.unpark_all();
    return count;
  }
  // Requires: there is room.
  void put(std::span<const std::byte> bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      std::size_t at = (first_ + count_) % ring_.size();
      std::size_t piece = std::min(bytes.size() - done, ring_.size() - at);
      std::memcpy(ring_.data() + at, bytes.data() + done, piece);
      count_ += piece;
      done += piece;
    }
    if (!bytes.empty()) changed_.unpark_all();
  }

  const MemoryStreamOptions options_;
  std::vector<std::byte> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  bool ended_ = false;          // no more is written: the reader reads the end
  bool reader_closed_ = false;  // nobody reads any more
  bool writer_closed_ = false;  // the writer's own end is closed
  bool reading_ = false;
  bool writing_ = false;
  ParkingLot changed_;
};

}  // namespace detail

namespace {

template <class T>
Task<Result<T>> closed() {
  co_return std::unexpected(make_error_code(std::errc::bad_file_descriptor));
}
Task<Result<std::size_t>> write_one(std::shared_ptr<detail::MemoryPipe> pipe,
                                    std::span<const std::byte> bytes) {
  Part part(bytes);
  co_return co_await detail::MemoryPipe::write(std::move(pipe), std::span<const Part>(&part, 1));
}
Task<Result<void>> end_of(std::shared_ptr<detail::MemoryPipe> pipe) {
  pipe->end();
  co_return {};
}

}  // namespace

Task<Result<std::size_t>> MemoryStream::read_some(std::span<std::byte> buffer) {
  return in_ ? detail::MemoryPipe::read(in_, buffer) : closed<std::size_t>();
}
Task<Result<std::size_t>> MemoryStream::write_some(std::span<const std::byte> bytes) {
  return out_ ? write_one(out_, bytes) : closed<std::size_t>();
}
Task<Result<std::size_t>> MemoryStream::write_some(std::span<const Part> parts) {
  return out_ ? detail::MemoryPipe::write(out_, parts) : closed<std::size_t>();
}
Task<Result<void>> MemoryStream::shutdown_write() { return out_ ? end_of(out_) : closed<void>(); }

void MemoryStream::close() noexcept {
  if (!in_) return;
  in_->close_reader();
  out_->end();
  out_->close_writer();
  in_.reset();
  out_.reset();
}

std::pair<MemoryStream, MemoryStream> memory_streams(MemoryStreamOptions options) {
  if (options.bytes_max == 0 || options.read_bytes_max == 0 || options.write_bytes_max == 0) {
    weft::detail::throw_usage_error("memory_streams(): a maximum of 0 bytes would wait for ever");
  }
  auto there = std::make_shared<detail::MemoryPipe>(options);
  auto back = std::make_shared<detail::MemoryPipe>(options);
  return {MemoryStream(back, there), MemoryStream(there, back)};
}

}  // namespace weft::inline v0::net
