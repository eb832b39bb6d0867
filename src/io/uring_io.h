// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::UringIO: the driver over io_uring.
//
// An operation is one submission; the kernel makes the system call when it can, and says so by one
// completion. All that was begun in a turn goes to the kernel by the one system call in which the
// loop also waits.
//
// Invariants
//   V1  an operation that is with the driver has one submission or completion that names it, or its
//       poll; nothing else names it. An accept() that waits may have none, but its entry has; and so
//       has a reader's entry while reader_waits. (A poll beside a multishot accept would be told of
//       connections that are gone when it looks.)
//   V2  an entry is named by at most one multishot accept, and one multishot recv, from accept_ahead()
//       or read_ahead() until a completion without CQE_F_MORE, which quiesce() waits for before the
//       entry is freed or leaves.
//   V3  a request to cancel is submitted before anything that is begun after it (U2), so it never
//       meets a later operation at the same address.
//   V4  while an entry reads ahead nothing else takes bytes from its descriptor, so they come in one
//       order. A reader that is no read_pooled() stops it first, and begins when it has ended.
//   V5  only a plain stream socket is read ahead: a Unix one may bring descriptors, which would be
//       lost. Others take no bytes before they are asked for.
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "uring_buffers.h"
#include "uring_ring.h"
#include "weft/io/platform_io.h"

namespace weft::inline v0::detail {

// Returns: 0 if this kernel, and this process's rights, have what the driver needs; else an errno.
// Asked once per process.
[[nodiscard]] int uring_error() noexcept;

[[nodiscard]] std::unique_ptr<PlatformIO> make_uring_io(int wake_fd);

struct UringEntry final : IoEntry {
  using IoEntry::IoEntry;
  bool drained = false;        // the last read left nothing: to try at once would be in vain
  bool accepts_ahead = false;  // a multishot accept names this entry
  bool reads_ahead = false;    // a multishot recv does
  bool stopping = false;       // it was asked to end
  bool reader_waits =
      false;  // `reader` waits for what the multishot recv brings, or for its end; or
              // is a readable(), and the multishot is the accept
};

class UringIO final : public PlatformIO {
 public:
  explicit UringIO(int wake_fd);
  ~UringIO() override;
  [[nodiscard]] Driver driver() const noexcept override { return Driver::io_uring; }
  [[nodiscard]] bool is_usable_here() noexcept override { return ring_.enter(0) != EEXIST; }
  void poll(std::int64_t timeout_ns) override;
  [[nodiscard]] bool has_completions() const noexcept override { return ring_.has_completions(); }

 private:
  static constexpr std::size_t kAcceptedMax = 64;  // connections ahead of accept()
  // What is no operation of a task's. Those are addresses, and multiples of 4.
  static constexpr std::uint64_t kWake = 1;
  static constexpr std::uint64_t kNobody = 3;
  static constexpr std::uint64_t kListener = 2;  // and the entry's address
  static constexpr std::uint64_t kStream = 3;    // and the entry's address
  static constexpr std::uint64_t kTags = 3;
  [[nodiscard]] static std::uint64_t address_of(const void* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at);
  }
  [[nodiscard]] static UringEntry& entry_of(IoOperation& operation) noexcept {
    return static_cast<UringEntry&>(*operation.entry);
  }
  // An operation whose `next` is itself is polled for, to be tried again.
  [[nodiscard]] static bool is_polled(const IoOperation& operation) noexcept {
    return operation.next == &operation;
  }

  // An accept() whose `flags` say so waits for what its entry's multishot accept brings.
  static constexpr std::int32_t kByListener = 1;
  [[nodiscard]] static bool is_by_listener(const IoOperation& operation) noexcept {
    return operation.code == IoCode::accept && operation.flags == kByListener;
  }

  [[nodiscard]] IoEntry* make_entry(int fd) override { return new UringEntry(fd); }
  void drop_entry(IoEntry& entry) noexcept override;
  [[nodiscard]] bool wants_nonblocking() const noexcept override { return false; }
  [[nodiscard]] BufferPool* make_pool() override;
  void quiesce(IoEntry& entry) noexcept override;
  [[nodiscard]] bool is_with_kernel(const IoEntry& entry) const noexcept override {
    const auto& known = static_cast<const UringEntry&>(entry);
    return known.accepts_ahead || known.reads_ahead;
  }
  bool begin(IoOperation& operation) override;
  bool withdraw(IoOperation& operation) noexcept override;

  [[nodiscard]] io_uring_sqe& next_entry_for(IoOperation& operation) noexcept;
  void submit(IoOperation& operation) noexcept;
  void submit_poll(IoOperation& operation, short events) noexcept;
  void submit_message(IoOperation& operation) noexcept;
  void submit_cancel(std::uint64_t whom) noexcept;
  void watch_wake_fd() noexcept;
  void accept_ahead(UringEntry& entry) noexcept;
  void accepted(UringEntry& entry, std::int32_t result, std::uint32_t flags) noexcept;
  [[nodiscard]] bool may_read_ahead(const UringEntry& entry) const noexcept;
  [[nodiscard]] bool begin_pooled(IoOperation& operation) noexcept;
  void submit_pooled(IoOperation& operation) noexcept;
  void submit_with_buffer(IoOperation& operation) noexcept;
  void poll_for(IoOperation& operation) noexcept;
  void read_ahead(UringEntry& entry) noexcept;
  void stop_reading_ahead(UringEntry& entry) noexcept;
  void received(UringEntry& entry, std::int32_t result, std::uint32_t flags) noexcept;
  void ended_reading_ahead(UringEntry& entry, std::int32_t result) noexcept;
  void enter(std::int64_t timeout_ns) noexcept;
  void reap_all() noexcept;
  void completed(const io_uring_cqe& cqe) noexcept;
  void completed(IoOperation& operation, std::int32_t result, std::uint32_t flags) noexcept;
  // Requires: it was interrupted, or its descriptor is ready.
  void try_again(IoOperation& operation) noexcept;

  const UringAbilities abilities_;
  UringRing ring_;
  bool wake_watched_ = false;
  bool ending_ = false;
  UringBuffers* buffers_ = nullptr;  // the pool, if the kernel chooses from it
  // For writev() on sockets, by slot: the kernel copies it when it takes the entry.
  std::unique_ptr<msghdr[]> messages_;
};

}  // namespace weft::inline v0::detail
