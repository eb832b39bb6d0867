// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::IoOperation: one thing asked of the kernel. It lies in the awaiting frame, lent to a
// driver until it is over. weft::detail::IoEntry: one descriptor, as the loop that uses it sees it.
//
// Threads        the loop's own.
// Allocation     none: the operation is the wait.
//
// Invariants
//   O1  an operation is with its driver from a start() that returned false until its waiter is
//       woken, or cancel() returned true.
//   O2  a descriptor has at most one operation that reads and one that writes: entry.reader and
//       entry.writer, exactly while they are with the driver.
//   O3  an entry is freed after the operations that name it are over and no event of the kernel's
//       that the driver still holds names it: so the next owner of a descriptor's number, or of the
//       entry's memory, hears nothing that was meant for the last.
//   O4  a connection that was accepted ahead stays with its listener, to the next loop too, until
//       accept() takes it or the listener is closed (L5).
//   O5  so do bytes that were read ahead, and the error that came after them: every operation that
//       takes bytes takes those first, in their order.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/atomic/atomic.h"
#include "weft/base/unique_fd.h"
#include "weft/core/continuation.h"
#include "weft/io/blocking_job.h"
#include "weft/io/buffer_pool.h"

namespace weft::inline v0 {
class PlatformIO;
}

namespace weft::inline v0::detail {

enum class IoCode : std::uint8_t {
  // With a descriptor that can wait. Those that read ...
  readable,     // no argument
  read,         // address, length
  read_pooled,  // second: the PooledBuffer, once it has one; address, length: the driver's
  readv,        // address: iovec*, length of them
  accept,       // address: sockaddr* or null, second: socklen_t*
  recvmsg,      // address: msghdr*, flags
  recvmmsg,     // address: mmsghdr*, length of them, flags
  // ... and those that write.
  writable,
  write,
  writev,
  connect,  // address: sockaddr*, length
  sendmsg,
  sendmmsg,
  // Files. They do not wait, they block: elsewhere.
  open,   // address: path, flags, length: mode
  pread,  // address, length, offset
  pwrite,
  fsync,  // flags: 1: only the data
  statx,  // address: path, second: struct statx*, flags, length: mask
};

[[nodiscard]] constexpr bool reads(IoCode code) noexcept { return code <= IoCode::recvmmsg; }
[[nodiscard]] constexpr bool blocks(IoCode code) noexcept { return code >= IoCode::open; }

struct IoEntry;

struct IoOperation {
  // Declared, so that this is no aggregate: g++ 12 destroys those twice in a co_await expression.
  explicit IoOperation(IoCode what) noexcept : code(what) {}
  IoOperation(const IoOperation&) = delete;
  IoOperation& operator=(const IoOperation&) = delete;

  IoCode code;
  bool cancel_asked = false;
  bool paused = false;      // an accept() that has not begun: its descriptor ran into a limit
  std::int32_t result = 0;  // when it is over: what the system call returns, or -errno
  std::int32_t flags = 0;
  IoEntry* entry = nullptr;  // null: open
  void* address = nullptr;
  void* second = nullptr;
  std::size_t length = 0;
  std::int64_t offset = 0;
  Continuation waiter;
  IoOperation* next = nullptr;  // the driver's, while it is there
  void* scratch = nullptr;      // the driver's, while it is there
};

// One that blocks. Where the kernel does not do it aside, a thread of the blocking pool does.
struct FileOperation : IoOperation, BlockingJob {
  explicit FileOperation(IoCode what) noexcept : IoOperation(what) {}
};

struct IoEntry {
  explicit IoEntry(int number) noexcept : fd(number) {}
  IoEntry(const IoEntry&) = delete;
  IoEntry& operator=(const IoEntry&) = delete;
  virtual ~IoEntry() = default;

  int fd;
  Atomic<PlatformIO*> io{nullptr};  // null: that loop has ended. relaxed: who looks from elsewhere
                                    // looks again under a lock
  bool is_socket = false;
  bool is_stream = false;      // may be read and written in pieces
  bool is_plain = false;       // a stream of bytes and nothing else: a short read has emptied it
  bool is_file = false;        // always ready, and blocks
  bool borrowed = false;       // readable(fd): somebody else's descriptor
  bool closing = false;        // close() came; the last operation that ends closes `owned`
  bool accept_paused = false;  // the last accept() ran into a limit
  std::uint32_t in_flight = 0;
  UniqueFd owned;
  std::vector<UniqueFd> accepted;  // ahead of accept(), by a driver that does so; the oldest first
  KeptBuffers kept;                // read ahead, by a driver that does so
  std::int32_t kept_error = 0;     // after what is kept: -errno
  IoOperation* reader = nullptr;
  IoOperation* writer = nullptr;
  IoEntry* prev = nullptr;  // the driver's list of all
  IoEntry* next = nullptr;
  IoEntry* next_closed = nullptr;

  [[nodiscard]] IoOperation*& slot_of(IoCode code) noexcept {
    return reads(code) ? reader : writer;
  }
  [[nodiscard]] bool has_read_ahead() const noexcept { return !kept.empty() || kept_error != 0; }
  // Whether its next loop has to hear of it (O4, O5).
  [[nodiscard]] bool has_ahead() const noexcept { return !accepted.empty() || has_read_ahead(); }
};

}  // namespace weft::inline v0::detail
