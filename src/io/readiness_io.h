// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ReadinessIO: a driver over a kernel that says "you could now", not "it is done".
//
// It tries first, at once: most operations need no wait. One that would block waits for its
// direction of its descriptor, and is tried again when the kernel says so. Files never would block
// by that measure, and always may; they go to the blocking pool.
//
// Invariants
//   R1  an entry's can_read is false only if the last attempt would have blocked, or, of a plain
//       stream of bytes, took less than it asked for, and no event came since: then an attempt now
//       would be a wasted system call.
//   R2  an event that is the last of its kind (the peer has hung up) leaves the direction ready for
//       good: an edge-triggered kernel will not say it again.
//   R3  an operation on done_ is over, and its waiter is woken by the next poll().
//   R4  a read_pooled() has a buffer from an attempt on, and only if that succeeds: not while it waits.
#include "weft/io/platform_io.h"

namespace weft::inline v0::detail {

struct ReadinessEntry final : IoEntry {
  using IoEntry::IoEntry;
  bool watched = false;  // the kernel was told of it
  bool can_read = true;
  bool can_write = true;
  bool hung_up = false;
  ReadinessEntry* next_dropped = nullptr;
};

class ReadinessIO : public PlatformIO {
 public:
  using PlatformIO::PlatformIO;
  [[nodiscard]] bool has_completions() const noexcept override { return done_ != nullptr; }

 protected:
  // Has the kernel report the entry from now on. Returns: 0, or an errno.
  virtual int watch(ReadinessEntry& entry) noexcept = 0;
  // No more.
  virtual void unwatch(ReadinessEntry& entry) noexcept = 0;

  // What the kernel said of an entry: as far as it was told.
  struct Event {
    bool in, out, hung_up, urgent;
  };
  void happened(ReadinessEntry& entry, Event event) noexcept;
  // What was over at once, but had to let others go first.
  void finish_done() noexcept;
  // Events of one poll() name entries until they are all looked at (O3).
  void free_dropped() noexcept;

 private:
  [[nodiscard]] IoEntry* make_entry(int fd) final { return new ReadinessEntry(fd); }
  void quiesce(IoEntry& entry) noexcept final;
  void drop_entry(IoEntry& entry) noexcept final;
  [[nodiscard]] bool wants_nonblocking() const noexcept final { return true; }
  bool begin(IoOperation& operation) final;
  bool withdraw(IoOperation& operation) noexcept final;

  bool begin_on_pool(IoOperation& operation);
  [[nodiscard]] std::int32_t attempt(IoOperation& operation) noexcept;
  void retry(ReadinessEntry& entry, IoOperation& operation) noexcept;

  IoOperation* done_ = nullptr;  // newest first
  ReadinessEntry* dropped_ = nullptr;
  int inline_left_ = kInlineMax;
};

}  // namespace weft::inline v0::detail
