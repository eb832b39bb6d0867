// SPDX-License-Identifier: MIT
#include "uring_io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "read_ahead.h"
#include "system_call.h"
#include "weft/base/assert.h"

namespace weft::inline v0::detail {

namespace {

constexpr std::size_t kBytesMax = 0x7ffff000;  // what read() and write() take at most
constexpr std::uint64_t kOwnPosition = static_cast<std::uint64_t>(-1);

// The two halves of the word are swapped where the other end comes first.
std::uint32_t poll_events(short events) noexcept {
  auto bits = static_cast<std::uint16_t>(events);
  return std::endian::native == std::endian::little ? bits : std::uint32_t{bits} << 16;
}

// The kernel has no such request: it is asked when they can be had, and then they are fetched.
bool is_batch(IoCode code) noexcept { return code == IoCode::recvmmsg || code == IoCode::sendmmsg; }

bool gives_up(const IoOperation& operation) noexcept {
  return operation.cancel_asked || (operation.entry && operation.entry->closing);
}

}  // namespace

int uring_error() noexcept { return uring_abilities().error; }

std::unique_ptr<PlatformIO> make_uring_io(int wake_fd) {
  return std::make_unique<UringIO>(wake_fd);
}

UringIO::UringIO(int wake_fd)
    : PlatformIO(wake_fd),
      abilities_(uring_abilities()),
      ring_(abilities_.setup),
      messages_(std::make_unique<msghdr[]>(UringRing::kEntries)) {
  watch_wake_fd();
}

UringIO::~UringIO() {
  ending_ = true;
  bool refused = !is_usable_here();
  if (!refused) submit_cancel(kWake);
  for (IoEntry* each = first_entry(); each && !refused; each = each->next) quiesce(*each);
  while (!refused && wake_watched_) {
    refused = ring_.enter(UringRing::kForever) == EEXIST;
    reap_all();
  }
  // On another thread than the ring's own the kernel refuses, and accepts nothing more in its name,
  // either. What it has accepted is kept (O4); closing the ring ends the rest.
  reap_all();
  for (IoEntry* each = first_entry(); each; each = each->next) {
    auto& entry = static_cast<UringEntry&>(*each);
    entry.accepts_ahead = entry.reads_ahead = false;
  }
  orphan_entries();
}

void UringIO::reap_all() noexcept {
  ring_.reap(UringRing::kCompletions, [this](const io_uring_cqe& cqe) { completed(cqe); });
}

// Every write to it is one completion, and nobody has to read it empty.
void UringIO::watch_wake_fd() noexcept {
  io_uring_sqe& sqe = ring_.next_entry().sqe;
  sqe.opcode = IORING_OP_POLL_ADD;
  sqe.fd = wake_fd();
  sqe.len = IORING_POLL_ADD_MULTI;
  sqe.poll32_events = poll_events(POLLIN);
  sqe.user_data = kWake;
  wake_watched_ = true;
}

// --- Beginning ----------------------------------------------------------------------------------

bool UringIO::begin(IoOperation& operation) {
  if (operation.code == IoCode::pread || operation.code == IoCode::pwrite) {
    // To the kernel -1 means "where it stands", and an offset into a stream means nothing.
    operation.result = 0;
    if (operation.offset < 0) operation.result = -EINVAL;
    IoEntry& entry = *operation.entry;
    if (!entry.is_file && ::lseek(entry.fd, 0, SEEK_CUR) < 0) operation.result = -errno;
    if (operation.result < 0) return true;
  }
  operation.next = nullptr;
  if (operation.entry && entry_of(operation).reads_ahead && takes_stream(operation)) {
    UringEntry& entry = entry_of(operation);
    entry.reader_waits = true;
    if (operation.code != IoCode::read_pooled) stop_reading_ahead(entry);  // V4
  } else if (operation.code == IoCode::read_pooled) {
    return begin_pooled(operation);
  } else if (is_batch(operation.code)) {
    poll_for(operation);
  } else if (operation.code == IoCode::readable && entry_of(operation).accepts_ahead) {
    entry_of(operation).reader_waits = true;
  } else if (operation.code == IoCode::accept && abilities_.is_recent) {
    UringEntry& entry = entry_of(operation);
    entry.accepted.reserve(kAcceptedMax);
    if (!entry.accepts_ahead) accept_ahead(entry);
    operation.flags = kByListener;
  } else {
    submit(operation);
  }
  return false;
}

io_uring_sqe& UringIO::next_entry_for(IoOperation& operation) noexcept {
  auto [sqe, place] = ring_.next_entry();
  operation.scratch = reinterpret_cast<void*>(std::uintptr_t{place});
  sqe.user_data = address_of(&operation);
  sqe.fd = operation.entry ? operation.entry->fd : AT_FDCWD;
  sqe.addr = address_of(operation.address);
  sqe.len = static_cast<std::uint32_t>(std::min(operation.length, kBytesMax));
  return sqe;
}

void UringIO::submit_poll(IoOperation& operation, short events) noexcept {
  io_uring_sqe& sqe = next_entry_for(operation);
  sqe.opcode = IORING_OP_POLL_ADD;
  sqe.addr = 0;
  sqe.len = 0;
  sqe.poll32_events = poll_events(events);
}

void UringIO::poll_for(IoOperation& operation) noexcept {
  operation.next = &operation;
  submit_poll(operation, reads(operation.code) ? POLLIN : POLLOUT);
}

// A WRITEV could raise SIGPIPE.
void UringIO::submit_message(IoOperation& operation) noexcept {
  io_uring_sqe& sqe = next_entry_for(operation);
  sqe.msg_flags = MSG_NOSIGNAL;
  auto* parts = static_cast<iovec*>(operation.address);
  if (operation.length == 1) {  // the kernel needs no header to copy
    sqe.opcode = IORING_OP_SEND;
    sqe.addr = address_of(parts->iov_base);
    sqe.len = static_cast<std::uint32_t>(std::min<std::size_t>(parts->iov_len, kBytesMax));
    return;
  }
  auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(operation.scratch));
  msghdr& message = messages_[UringRing::slot_of(place)];
  message = {};
  message.msg_iov = parts;
  message.msg_iovlen = operation.length;
  sqe.opcode = IORING_OP_SENDMSG;
  sqe.addr = address_of(&message);
  sqe.len = 1;
}

void UringIO::submit(IoOperation& operation) noexcept {
  const bool is_socket = operation.entry && operation.entry->is_socket;
  switch (operation.code) {
    case IoCode::readable:
      return submit_poll(operation, POLLIN);
    case IoCode::writable:
      return submit_poll(operation, POLLOUT);
    case IoCode::writev:
      if (is_socket) return submit_message(operation);
      break;
    default:
      break;
  }
  io_uring_sqe& sqe = next_entry_for(operation);
  switch (operation.code) {
    case IoCode::read:
      sqe.opcode = is_socket ? IORING_OP_RECV : IORING_OP_READ;
      if (!is_socket) {
        sqe.off = kOwnPosition;
      } else if (entry_of(operation).drained) {
        sqe.ioprio = IORING_RECVSEND_POLL_FIRST;
      }
      break;
    case IoCode::read_pooled:
      sqe.opcode = is_socket ? IORING_OP_RECV : IORING_OP_READ;
      if (!is_socket) sqe.off = kOwnPosition;
      if (operation.second) break;
      sqe.len = BufferPool::kBytes;
      sqe.flags = IOSQE_BUFFER_SELECT;
      sqe.buf_group = UringBuffers::kGroup;
      break;
    case IoCode::write:
      sqe.opcode = is_socket ? IORING_OP_SEND : IORING_OP_WRITE;
      if (is_socket) {
        sqe.msg_flags = MSG_NOSIGNAL;
      } else {
        sqe.off = kOwnPosition;
      }
      break;
    case IoCode::readv:
      sqe.opcode = IORING_OP_READV;
      sqe.off = kOwnPosition;
      break;
    case IoCode::writev:
      sqe.opcode = IORING_OP_WRITEV;
      sqe.off = kOwnPosition;
      break;
    case IoCode::accept:
      sqe.opcode = IORING_OP_ACCEPT;
      sqe.len = 0;
      sqe.addr2 = address_of(operation.second);
      sqe.accept_flags = SOCK_CLOEXEC;
      break;
    case IoCode::connect:
      sqe.opcode = IORING_OP_CONNECT;
      sqe.len = 0;
      sqe.off = operation.length;
      break;
    case IoCode::recvmsg:
      sqe.opcode = IORING_OP_RECVMSG;
      sqe.len = 1;
      sqe.msg_flags = static_cast<std::uint32_t>(operation.flags | MSG_CMSG_CLOEXEC);
      break;
    case IoCode::sendmsg:
      sqe.opcode = IORING_OP_SENDMSG;
      sqe.len = 1;
      sqe.msg_flags = static_cast<std::uint32_t>(operation.flags | MSG_NOSIGNAL);
      break;
    case IoCode::open:
      sqe.opcode = IORING_OP_OPENAT;
      sqe.open_flags = static_cast<std::uint32_t>(operation.flags | O_CLOEXEC);
      break;
    case IoCode::pread:
    case IoCode::pwrite:
      sqe.opcode = operation.code == IoCode::pread ? IORING_OP_READ : IORING_OP_WRITE;
      sqe.off = static_cast<std::uint64_t>(operation.offset);
      break;
    case IoCode::fsync:
      sqe.opcode = IORING_OP_FSYNC;
      sqe.addr = 0;
      sqe.len = 0;
      sqe.fsync_flags = operation.flags ? IORING_FSYNC_DATASYNC : 0;
      break;
    case IoCode::statx:
      sqe.opcode = IORING_OP_STATX;
      sqe.off = address_of(operation.second);
      sqe.statx_flags = static_cast<std::uint32_t>(operation.flags);
      break;
    case IoCode::recvmmsg:
    case IoCode::sendmmsg:
    case IoCode::readable:
    case IoCode::writable:
      break;  // elsewhere, and above
  }
}

// --- Accepting ----------------------------------------------------------------------------------

// A multishot accept costs 9.1 us per connection where one submission for each costs 11.1 us
// (bursts of 50, accept and close).
void UringIO::accept_ahead(UringEntry& entry) noexcept {
  io_uring_sqe& sqe = ring_.next_entry().sqe;
  sqe.opcode = IORING_OP_ACCEPT;
  sqe.fd = entry.fd;
  sqe.ioprio = IORING_ACCEPT_MULTISHOT;
  sqe.accept_flags = SOCK_CLOEXEC;
  sqe.user_data = address_of(&entry) | kListener;
  entry.accepts_ahead = true;
}

void UringIO::accepted(UringEntry& entry, std::int32_t result, std::uint32_t flags) noexcept {
  if (!(flags & IORING_CQE_F_MORE)) entry.accepts_ahead = false;
  IoOperation* waits = entry.reader;
  if (waits && !is_by_listener(*waits)) waits = nullptr;
  if (result >= 0) {
    if (!waits) {
      entry.accepted.emplace_back(result);
      if (entry.accepts_ahead && entry.accepted.size() == kAcceptedMax) {
        submit_cancel(address_of(&entry) | kListener);
      }
      if (std::exchange(entry.reader_waits, false)) finish(*entry.reader, 0);
      return;
    }
    waits->result = result;
    tell_peer(*waits);
    return finish(*waits, result);
  }
  // Without a waiter, the next accept() will meet it again. A readable() asks the kernel now.
  if (!waits) {
    if (std::exchange(entry.reader_waits, false)) submit(*entry.reader);
    return;
  }
  if (result == -ECANCELED || result == -EINTR) {
    if (!entry.accepts_ahead) accept_ahead(entry);
  } else if (result == -EAGAIN) {
    // Another process has the socket in non-blocking mode.
    waits->flags = 0;
    waits->next = waits;
    submit_poll(*waits, POLLIN);
  } else {
    finish(*waits, result);
  }
}

void UringIO::quiesce(IoEntry& entry) noexcept {
  auto& quiet = static_cast<UringEntry&>(entry);
  if (quiet.accepts_ahead) submit_cancel(address_of(&entry) | kListener);
  if (quiet.reads_ahead) submit_cancel(address_of(&entry) | kStream);
  while (quiet.accepts_ahead || quiet.reads_ahead) {
    if (!ring_.has_completions()) enter(UringRing::kForever);
    reap_all();
  }
}

void UringIO::drop_entry(IoEntry& entry) noexcept {
  quiesce(entry);
  delete &entry;
}

// --- Cancelling ---------------------------------------------------------------------------------

bool UringIO::withdraw(IoOperation& operation) noexcept {
  if (is_by_listener(operation)) return true;
  if (reads(operation.code) && operation.entry &&
      std::exchange(entry_of(operation).reader_waits, false)) {
    return true;  // what comes is the next reader's
  }
  auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(operation.scratch));
  io_uring_sqe* sqe = ring_.unsubmitted(place);
  if (sqe && sqe->user_data == address_of(&operation)) {
    *sqe = {};
    sqe->opcode = IORING_OP_NOP;
    sqe->user_data = kNobody;
    return true;
  }
  submit_cancel(address_of(&operation));
  return false;
}

void UringIO::submit_cancel(std::uint64_t whom) noexcept {
  io_uring_sqe& sqe = ring_.next_entry().sqe;
  sqe.opcode = IORING_OP_ASYNC_CANCEL;
  sqe.fd = -1;
  sqe.addr = whom;
  sqe.user_data = kNobody;
  if (abilities_.skips_success) sqe.flags = IOSQE_CQE_SKIP_SUCCESS;
}

// --- Completing ---------------------------------------------------------------------------------

void UringIO::poll(std::int64_t timeout_ns) {
  // To close some may mean to wait for the kernel, and so to reap what makes others ready, or wakes.
  if (take_closed_elsewhere() || ring_.has_completions()) timeout_ns = 0;
  if (buffers_) buffers_->take_returned();
  if (timeout_ns != 0 || ring_.wants_to_enter()) enter(timeout_ns);
  ring_.reap(kEventsMax, [this](const io_uring_cqe& cqe) { completed(cqe); });
  take_closed_elsewhere();
}

void UringIO::enter(std::int64_t timeout_ns) noexcept {
  int error = ring_.enter(timeout_ns);
  WEFT_ASSERT(error == 0 || error == EINTR || error == EBUSY || error == EAGAIN,
              "io_uring_enter() fails only for want of memory or of room");
}

void UringIO::completed(const io_uring_cqe& cqe) noexcept {
  switch (cqe.user_data) {
    case kWake:
      if (cqe.flags & IORING_CQE_F_MORE) return;
      wake_watched_ = false;
      // It ends when there was no room for a completion.
      if (!ending_) watch_wake_fd();
      return;
    case kNobody:
      return;
    default:
      break;
  }
  if (std::uint64_t tag = cqe.user_data & kTags) {
    auto& entry = *reinterpret_cast<UringEntry*>(cqe.user_data & ~kTags);
    return tag == kListener ? accepted(entry, cqe.res, cqe.flags)
                            : received(entry, cqe.res, cqe.flags);
  }
  completed(*reinterpret_cast<IoOperation*>(cqe.user_data), cqe.res, cqe.flags);
}

void UringIO::completed(IoOperation& operation, std::int32_t result, std::uint32_t flags) noexcept {
  const bool pooled = operation.code == IoCode::read_pooled;
  if (flags & IORING_CQE_F_BUFFER) operation.second = &buffers_->taken(flags);
  if (is_polled(operation)) {
    operation.next = nullptr;
    if (result >= 0 && !gives_up(operation)) {
      if (!is_batch(operation.code)) return try_again(operation);
      result = perform(operation);
      if (result == -EAGAIN) return poll_for(operation);
    } else if (result >= 0) {
      result = -ECANCELED;
    }
  } else if (result == -EINTR || result == -EAGAIN || (pooled && result == -ENOBUFS)) {
    // Interrupted: by a request to cancel, in a thread of the kernel's. Would block: another process
    // has the same socket in non-blocking mode. No buffers: they are all lent.
    if (pooled) fill_buffer(operation, result);
    if (gives_up(operation)) {
      result = -ECANCELED;
    } else if (result == -EINTR || (pooled && operation.entry->is_file)) {
      return try_again(operation);
    } else if (!blocks(operation.code)) {
      return poll_for(operation);
    }
  }
  if (pooled) fill_buffer(operation, result);
  if ((pooled || operation.code == IoCode::read) && abilities_.is_recent) {
    entry_of(operation).drained = result > 0 && !(flags & IORING_CQE_F_SOCK_NONEMPTY);
  }
  finish(operation, result);
}

}  // namespace weft::inline v0::detail
