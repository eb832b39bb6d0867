// SPDX-License-Identifier: MIT
#include "uring_ring.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

namespace {

// Everything here stands in the header of Linux 6.1; an older one gets it from here.
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

int setup(std::uint32_t entries, io_uring_params& params) noexcept {
  return static_cast<int>(::syscall(__NR_io_uring_setup, entries, &params));
}
int register_with(int fd, unsigned what, void* argument, unsigned count) noexcept {
  return static_cast<int>(::syscall(__NR_io_uring_register, fd, what, argument, count));
}

// The best that the kernel takes, and what it may do without, release by release.
constexpr std::uint32_t kBase = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
constexpr std::uint32_t kCooperative =  // Linux 5.19
    kBase | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
constexpr std::uint32_t kSetups[] = {
    kCooperative | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,  // 6.1
    kCooperative,
    kBase,
};

// RSRC_TAGS stands for Linux 5.13 and its multishot poll.
constexpr std::uint32_t kFeatures =
    IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE |
    IORING_FEAT_RW_CUR_POS | IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG | IORING_FEAT_RSRC_TAGS;

constexpr std::uint8_t kOpcodes[] = {
    IORING_OP_NOP,     IORING_OP_READV,    IORING_OP_WRITEV, IORING_OP_FSYNC,
    IORING_OP_SENDMSG, IORING_OP_RECVMSG,  IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL,
    IORING_OP_CONNECT, IORING_OP_OPENAT,   IORING_OP_STATX,  IORING_OP_READ,
    IORING_OP_WRITE,   IORING_OP_POLL_ADD, IORING_OP_SEND,   IORING_OP_RECV,
};

bool has_opcodes(int ring) noexcept {
  constexpr std::size_t kOps = 256;
  struct Probe {
    alignas(
        io_uring_probe) std::byte bytes[sizeof(io_uring_probe) + kOps * sizeof(io_uring_probe_op)];
  };
  auto storage = std::unique_ptr<Probe>(new (std::nothrow) Probe{});
  if (!storage) return false;
  auto* probe = reinterpret_cast<io_uring_probe*>(storage->bytes);
  if (register_with(ring, IORING_REGISTER_PROBE, probe, kOps) < 0) return false;
  for (std::uint8_t code : kOpcodes) {
    if (code > probe->last_op || !(probe->ops[code].flags & IO_URING_OP_SUPPORTED)) return false;
  }
  return true;
}

UringAbilities ask() noexcept {
  UringAbilities found;
  for (std::uint32_t flags : kSetups) {
    try {
      UringRing ring(flags);
      if ((ring.features() & kFeatures) != kFeatures || !has_opcodes(ring.fd())) {
        found.error = ENOSYS;
        return found;
      }
      found.error = 0;
      found.setup = flags;
      found.skips_success = (ring.features() & IORING_FEAT_CQE_SKIP) != 0;
      found.is_recent = (flags & kCooperative) == kCooperative;
      found.reads_ahead = (flags & IORING_SETUP_DEFER_TASKRUN) != 0;  // 6.1
      return found;
    } catch (const std::system_error& error) {
      found.error = error.code().value();
      if (found.error != EINVAL) return found;
    } catch (...) {
      found.error = ENOMEM;
      return found;
    }
  }
  return found;
}

}  // namespace

const UringAbilities& uring_abilities() noexcept {
  static const UringAbilities found = ask();
  return found;
}

// --- Making it ----------------------------------------------------------------------------------

UringRing::Mapping::Mapping(int fd, std::size_t bytes, std::int64_t offset) : bytes_(bytes) {
  void* start =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
  if (start == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap of an io_uring");
  }
  start_ = static_cast<std::byte*>(start);
}

UringRing::Mapping& UringRing::Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

UringRing::Mapping::~Mapping() {
  if (start_) ::munmap(start_, bytes_);
}

UringRing::UringRing(std::uint32_t flags) {
  io_uring_params params{};
  params.flags = flags;
  params.cq_entries = kCompletions;
  fd_ = UniqueFd(setup(kEntries, params));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "io_uring_setup");
  features_ = params.features;
  if (!(features_ & IORING_FEAT_SINGLE_MMAP) || params.sq_entries != kEntries) {
    throw std::system_error(ENOSYS, std::generic_category(), "io_uring_setup");
  }
  std::size_t submissions = params.sq_off.array + params.sq_entries * sizeof(std::uint32_t);
  std::size_t completions = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  rings_ =
      Mapping(fd_.get(), submissions > completions ? submissions : completions, IORING_OFF_SQ_RING);
  entries_ = Mapping(fd_.get(), params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
  sq_head_ = SharedWord(rings_.at(params.sq_off.head));
  sq_tail_ = SharedWord(rings_.at(params.sq_off.tail));
  sq_flags_ = SharedWord(rings_.at(params.sq_off.flags));
  cq_head_ = SharedWord(rings_.at(params.cq_off.head));
  cq_tail_ = SharedWord(rings_.at(params.cq_off.tail));
  cq_mask_ = params.cq_entries - 1;
  sqes_ = reinterpret_cast<io_uring_sqe*>(entries_.at(0));
  cqes_ = reinterpret_cast<io_uring_cqe*>(rings_.at(params.cq_off.cqes));
  // The kernel takes entries by way of an array of indices. Ours go in order, for good.
  auto* array = reinterpret_cast<std::uint32_t*>(rings_.at(params.sq_off.array));
  for (std::uint32_t i = 0; i < kEntries; ++i) array[i] = i;
}

UringRing::~UringRing() = default;

int UringRing::provide_buffers(io_uring_buf* places, std::uint32_t count,
                               std::uint16_t group) noexcept {
  io_uring_buf_reg ring{};
  ring.ring_addr = reinterpret_cast<std::uintptr_t>(places);
  ring.ring_entries = count;
  ring.bgid = group;
  return register_with(fd_.get(), IORING_REGISTER_PBUF_RING, &ring, 1) < 0 ? errno : 0;
}

// --- Submitting ---------------------------------------------------------------------------------

UringRing::Entry UringRing::next_entry() noexcept {
  if (tail_ - sq_head_.load(acquire) == kEntries) [[unlikely]]
    make_room();
  std::uint32_t place = tail_++;
  io_uring_sqe& sqe = sqes_[slot_of(place)];
  std::memset(&sqe, 0, sizeof sqe);
  return {sqe, place};
}

void UringRing::make_room() noexcept {
  for (;;) {
    int error = enter(0);
    if (tail_ - sq_head_.load(acquire) < kEntries) return;
    WEFT_ASSERT(error == 0 || error == EINTR || error == EBUSY || error == EAGAIN,
                "io_uring_enter() fails only for want of memory or of room");
    // It wants its completions taken first (EBUSY, before Linux 5.19), or the memory that they hold.
    for (; head_ != cq_tail_.load(acquire); cq_head_.store(++head_, release)) {
      stash_.push_back(cqes_[head_ & cq_mask_]);
    }
  }
}

bool UringRing::take_stashed(io_uring_cqe& cqe) noexcept {
  cqe = stash_.front();
  stash_.erase(stash_.begin());
  return true;
}

io_uring_sqe* UringRing::unsubmitted(std::uint32_t place) noexcept {
  std::uint32_t head = sq_head_.load(acquire);
  return place - head < tail_ - head ? &sqes_[slot_of(place)] : nullptr;
}

bool UringRing::wants_to_enter() const noexcept {
  return tail_ != sq_head_.load(relaxed) ||
         (sq_flags_.load(relaxed) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

bool UringRing::has_completions() const noexcept {
  return !stash_.empty() || head_ != cq_tail_.load(acquire);
}

int UringRing::enter(std::int64_t timeout_ns) noexcept {
  sq_tail_.store(tail_, release);
  std::uint32_t to_submit = tail_ - sq_head_.load(acquire);
  __kernel_timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  io_uring_getevents_arg argument{};
  if (timeout_ns > 0) argument.ts = reinterpret_cast<std::uintptr_t>(&timeout);
  unsigned flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
  long result = ::syscall(__NR_io_uring_enter, fd_.get(), to_submit, timeout_ns == 0 ? 0 : 1, flags,
                          &argument, sizeof argument);
  return result < 0 && errno != ETIME ? errno : 0;
}

}  // namespace weft::inline v0::detail
