// SPDX-License-Identifier: MIT
#pragma once
// weft::http::detail::write_and_read(): an answer leaves, and what the peer sends next is waited for, by one wait.
//
// For a driver to which a write is given and not made (io_uring): to await the write first, and then the read, would wake the task once
// more for each request, only to find that all has left.
//
// Threads        the socket's loop.
// Cancellation   a cancel point. What has been written is counted, and what was read is delivered (L5).
// Allocation     a frame.
//
// Invariants
//   W1  if all was written, WriteListener::written() has been called once, before the wait ends.
//   W2  otherwise, or if that says so, nothing more is waited for: the read is cancelled, and what came in spite of that is delivered.
//   W3  each has its own time, the read from the end of the write on. There is one alarm for both: it is moved when it rings.
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <system_error>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/io/descriptor.h"
#include "weft/io/pooled_bytes.h"

namespace weft::inline v0::http::detail {

class WriteListener {
 public:
  // All has left: its memory may be used for something else. Returns: whether what comes next is still waited for.
  [[nodiscard]] virtual bool written() noexcept = 0;

 protected:
  ~WriteListener() = default;
};

struct WriteAndReadTimes {  // how long each may take
  std::chrono::nanoseconds write{}, read{};
};

struct WrittenAndRead {
  WrittenAndRead() {}
  std::size_t written = 0;
  std::error_code write_error;              // timed_out: nothing of it has left in its time
  std::optional<Result<PooledBytes>> read;  // nothing: it was not waited for, or was given up
};

// Whether it is of use: on this loop, now.
[[nodiscard]] bool writes_and_reads() noexcept;
// Requires: nobody else reads or writes; `bytes` are not empty, and there until written() or until the wait has ended.
[[nodiscard]] Task<WrittenAndRead> write_and_read(Descriptor& socket,
                                                  std::span<const std::byte> bytes,
                                                  WriteAndReadTimes times, WriteListener& listener);

}  // namespace weft::inline v0::http::detail
