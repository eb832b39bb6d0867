// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::UringRing: the two rings that are shared with the kernel, over the bare system calls.
//
// Threads        the one that made it, where the kernel has DEFER_TASKRUN (enter() then says EEXIST
//                elsewhere); its end: any.
// Memory order   a head or tail that the other side moves is loaded with acquire, one that we move
//                is stored with release. The kernel does the same on its side.
//
// Invariants
//   U1  of the submission ring, [head, tail_) is ours: filled, and not yet seen by the kernel. It
//       sees what enter() tells it.
//   U2  the kernel takes entries in the order of next_entry(): a request to cancel something
//       overtakes nothing that was begun after it.
//   U3  of the completion ring, [head_, tail) is ours, followed by what the kernel keeps for want of
//       room (kOverflow) until we enter.
#include <linux/io_uring.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/atomic/shared_word.h"
#include "weft/base/unique_fd.h"

namespace weft::inline v0::detail {

// What this kernel, and this process's rights, have to offer. Asked once per process.
struct UringAbilities {
  int error = 0;               // errno: it cannot be used
  std::uint32_t setup = 0;     // flags for io_uring_setup()
  bool skips_success = false;  // IOSQE_CQE_SKIP_SUCCESS: Linux 5.17
  bool is_recent = false;      // IORING_RECVSEND_POLL_FIRST and CQE_F_SOCK_NONEMPTY: Linux 5.19
  bool reads_ahead = false;    // IORING_RECV_MULTISHOT: Linux 6.0
};
[[nodiscard]] const UringAbilities& uring_abilities() noexcept;

class UringRing {
 public:
  static constexpr std::uint32_t kEntries = 256;       // submissions
  static constexpr std::uint32_t kCompletions = 4096;  // more than that: the kernel keeps them
  static constexpr std::int64_t kForever = -1;

  // Throws std::system_error.
  explicit UringRing(std::uint32_t setup);
  UringRing(const UringRing&) = delete;
  UringRing& operator=(const UringRing&) = delete;
  ~UringRing();

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::uint32_t features() const noexcept { return features_; }

  // Returns: a cleared submission entry, and its place in the order of all. If the ring is full the
  // kernel is told first.
  struct Entry {
    io_uring_sqe& sqe;
    std::uint32_t place;
  };
  [[nodiscard]] Entry next_entry() noexcept;
  // Returns: the entry at `place`, if the kernel has not seen it; else null.
  [[nodiscard]] io_uring_sqe* unsubmitted(std::uint32_t place) noexcept;
  [[nodiscard]] static constexpr std::uint32_t slot_of(std::uint32_t place) noexcept {
    return place & (kEntries - 1);
  }

  // From now on the kernel may choose buffers of the `group` from this ring of `count` places. Returns:
  // 0, or an errno.
  [[nodiscard]] int provide_buffers(io_uring_buf* places, std::uint32_t count,
                                    std::uint16_t group) noexcept;

  // Whether the kernel has something for us, or we for it, that takes a system call.
  [[nodiscard]] bool wants_to_enter() const noexcept;
  [[nodiscard]] bool has_completions() const noexcept;
  // One system call: submits, and waits for a completion, timeout_ns at most (0: does not wait).
  // Returns: 0, or an errno: of those, EEXIST means that this thread is not the maker's.
  int enter(std::int64_t timeout_ns) noexcept;

  // Calls f(cqe) for up to `most` completions, in their order. f may call next_entry(), enter() and
  // reap().
  template <class F>
  void reap(std::uint32_t most, F f) {
    io_uring_cqe cqe;
    for (; most > 0 && take(cqe); --most) f(cqe);
  }

 private:
  class Mapping {
   public:
    Mapping() noexcept = default;
    Mapping(int fd, std::size_t bytes, std::int64_t offset);
    Mapping(const Mapping&) = delete;
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();
    [[nodiscard]] std::byte* at(std::size_t offset) const noexcept { return start_ + offset; }

   private:
    std::byte* start_ = nullptr;
    std::size_t bytes_ = 0;
  };

  void make_room() noexcept;
  [[nodiscard]] bool take(io_uring_cqe& cqe) noexcept {
    if (!stash_.empty()) [[unlikely]]
      return take_stashed(cqe);
    if (head_ == cq_tail_.load(acquire)) return false;
    cqe = cqes_[head_ & cq_mask_];
    cq_head_.store(++head_, release);  // one by one: who handles it may need the room
    return true;
  }
  bool take_stashed(io_uring_cqe& cqe) noexcept;

  UniqueFd fd_;
  std::uint32_t features_ = 0;
  Mapping rings_, entries_;
  SharedWord sq_head_, sq_tail_, sq_flags_, cq_head_, cq_tail_;
  std::uint32_t cq_mask_ = 0;
  std::uint32_t tail_ = 0;  // of submissions
  std::uint32_t head_ = 0;  // of completions
  io_uring_sqe* sqes_ = nullptr;
  io_uring_cqe* cqes_ = nullptr;
  std::vector<io_uring_cqe> stash_;  // taken out early, to make room
};

}  // namespace weft::inline v0::detail
