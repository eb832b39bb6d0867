// SPDX-License-Identifier: MIT
#pragma once
// weft::PlatformIO: what a loop asks of the kernel, in one shape for io_uring, epoll and poll.
//
// The shape is completion: start(operation), and later its waiter is woken with the result in it.
// A driver that only hears of readiness makes the system call itself, at once where it can. There
// is one driver per loop; it also is what the loop sleeps in.
//
// Threads        the loop's own, every member; between two runs of the loop, whoever closes a descriptor
//                of its, under a lock that settles who.
// Cancellation   cancel() answers at once (true: over, nothing was taken) or later (false: the
//                waiter is woken, the result says whether by -ECANCELED or with what was taken).
// Allocation     an entry per descriptor; none per operation. read_pooled(): the loop's BufferPool.
//
// docs/design/io_drivers.md says how the three differ, and what a fourth has to do:
// tests/conformance/ is its examination.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/io/chaos.h"
#include "weft/io/driver.h"
#include "weft/io/operation.h"

namespace weft::inline v0 {

class PlatformIO {
 public:
  static constexpr int kEventsMax = 256;  // completions per poll(): L2, others want a turn too
  static constexpr int kInlineMax = 64;   // operations per poll() that may be over at once
  static constexpr std::int64_t kForever = -1;

  explicit PlatformIO(int wake_fd) noexcept : wake_fd_(wake_fd) {}
  PlatformIO(const PlatformIO&) = delete;
  PlatformIO& operator=(const PlatformIO&) = delete;
  // Requires: no operation is under way. Entries that are left belong to their descriptors.
  virtual ~PlatformIO();

  // The driver of the loop that runs here.
  [[nodiscard]] static PlatformIO* current_or_null() noexcept;

  [[nodiscard]] virtual Driver driver() const noexcept = 0;
  // Whether this thread may drive it: false on another than its maker's, where the kernel insists.
  [[nodiscard]] virtual bool is_usable_here() noexcept { return true; }

  // A descriptor comes to this loop. The number stays the caller's. Throws std::system_error if it
  // is none. Sets or clears O_NONBLOCK, as the driver wants it.
  [[nodiscard]] detail::IoEntry& attach(int fd);
  // It leaves. Requires: no operation of its is under way. The entry is freed, by O3.
  void detach(detail::IoEntry& entry) noexcept;
  // It leaves, for another loop. Returns: false if the entry is freed; true if connections were
  // accepted, or bytes read, ahead: then it stays the caller's, of no loop, until adopt().
  [[nodiscard]] bool let_go(detail::IoEntry& entry) noexcept;
  // Its next loop is this. Frees an entry of no loop.
  [[nodiscard]] detail::IoEntry& adopt(detail::IoEntry& entry);
  // Ends its operations, with EBADF, and detaches it; then the number is closed.
  void close(detail::IoEntry& entry, UniqueFd fd) noexcept;
  // The same, from any thread, without a loop too. While somebody drives the loop, it is left to that
  // thread; otherwise it is done here and now.
  static void close_elsewhere(detail::IoEntry& entry, UniqueFd fd) noexcept;
  // An entry for somebody else's descriptor, while operations wait on it. Null if it is none.
  [[nodiscard]] detail::IoEntry* borrow(int fd);

  // Begins an operation. Returns: true: it is over, operation.result says how; false: it is with the
  // driver (O1). Throws UsageError if another of its kind waits on that descriptor (O2), and then
  // nothing was begun.
  [[nodiscard]] bool start(detail::IoOperation& operation);
  // As start(), but it does not begin before resume_paused(), which returns as start() does. An
  // operation that ended meanwhile, by close(), is left alone: false.
  void start_paused(detail::IoOperation& operation);
  [[nodiscard]] bool resume_paused(detail::IoOperation& operation) noexcept;
  // Requires: it is with the driver.
  [[nodiscard]] bool cancel(detail::IoOperation& operation) noexcept;

  // Tells the kernel what was begun, waits until something is over, someone wakes the loop, or
  // timeout_ns have passed (0: does not wait; kForever), and wakes the waiters of what is over.
  virtual void poll(std::int64_t timeout_ns) = 0;

  // This thread drives the loop, and calls the members, from now on; a new driver is driven. Before it
  // is destroyed, too.
  void begin_driving() noexcept;
  // Nobody does. Requires: no operation is under way.
  void end_driving() noexcept;

  // Any thread: ends the poll() that waits, or the next one.
  void wake() const noexcept;

  // Operations with the driver.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  // Descriptors of this loop.
  [[nodiscard]] std::size_t entries() const noexcept { return entries_.load(detail::relaxed); }
  // Buffers of this loop's pool that are out of it: with tasks, or kept by descriptors.
  [[nodiscard]] std::size_t buffers_lent() const noexcept { return pool_ ? pool_->lent() : 0; }
  // Whether poll(0) would find something to do, as far as can be told without the kernel.
  [[nodiscard]] virtual bool has_completions() const noexcept { return false; }
  // Descriptors that died elsewhere wait for poll() to close them. A glance.
  [[nodiscard]] bool has_closed_elsewhere() const noexcept {
    return closed_elsewhere_.load(detail::relaxed) != nullptr;
  }

 protected:
  // Returns: a new entry, of the driver's own type.
  [[nodiscard]] virtual detail::IoEntry* make_entry(int fd) = 0;
  // Accepts and reads no more ahead. When this returns, the kernel has nothing more to say of the
  // entry.
  virtual void quiesce(detail::IoEntry&) noexcept {}
  // Whether quiesce() has something to do that only the driver's own thread can.
  [[nodiscard]] virtual bool is_with_kernel(const detail::IoEntry&) const noexcept { return false; }
  // No operation of the entry's is under way. Frees it, by O3.
  virtual void drop_entry(detail::IoEntry& entry) noexcept = 0;
  // The descriptor should be in non-blocking mode.
  [[nodiscard]] virtual bool wants_nonblocking() const noexcept = 0;
  virtual bool begin(detail::IoOperation& operation) = 0;
  virtual bool withdraw(detail::IoOperation& operation) noexcept = 0;

  // A pool for this loop.
  [[nodiscard]] virtual detail::BufferPool* make_pool() { return new detail::BufferPool(*this); }

  // The loop's pool; null until the first read_pooled().
  [[nodiscard]] detail::BufferPool* pool() const noexcept { return pool_; }
  // For a read_pooled() that is about to read: takes a buffer, as its second, address and length.
  // Returns: false if there is no memory.
  [[nodiscard]] bool take_buffer(detail::IoOperation& operation) noexcept;
  // It has read, with `result`: the buffer is filled, or goes back.
  static void fill_buffer(detail::IoOperation& operation, std::int32_t result) noexcept;
  [[nodiscard]] detail::Chaos& chaos() noexcept { return chaos_; }

  // The operation is over, and its waiter is woken.
  void finish(detail::IoOperation& operation, std::int32_t result) noexcept;
  [[nodiscard]] int wake_fd() const noexcept { return wake_fd_; }
  [[nodiscard]] detail::IoEntry* first_entry() const noexcept { return first_; }
  // What descriptors that died elsewhere left here. Called by every poll(). Returns: whether there
  // were any.
  bool take_closed_elsewhere() noexcept;
  // Entries outlive the driver where their descriptors do. Every driver's destructor calls it first.
  void orphan_entries() noexcept;

 private:
  [[nodiscard]] bool take_slot(detail::IoOperation& operation);
  void forget(detail::IoOperation& operation) noexcept;
  void split(detail::IoOperation& operation) noexcept;
  [[nodiscard]] static bool take_accepted(detail::IoOperation& operation) noexcept;
  static void note_pressure(detail::IoOperation& operation) noexcept;
  void link(detail::IoEntry& entry) noexcept;
  void unlink(detail::IoEntry& entry) noexcept;

  const int wake_fd_;
  detail::Chaos chaos_;
  detail::BufferPool* pool_ = nullptr;  // its own owner, with those who hold its buffers
  std::size_t pending_ = 0;
  detail::Atomic<std::size_t> entries_{0};  // relaxed: a count, and one thread at a time writes it
  bool driven_ = true;                      // under the owners' lock
  detail::IoEntry* first_ = nullptr;
  std::vector<detail::IoEntry*> borrowed_;                      // by number
  detail::Atomic<detail::IoEntry*> closed_elsewhere_{nullptr};  // linked by `next_closed`
};

}  // namespace weft::inline v0
