// SPDX-License-Identifier: MIT
// read_pooled() on io_uring. Three ways: what may be read ahead is, by a multishot recv; of the rest the
// kernel takes a buffer when it has bytes (IOSQE_BUFFER_SELECT); and where it has none to take, the
// descriptor is polled for, and a buffer is found then.
#include <cerrno>
#include <system_error>
#include <utility>

#include "read_ahead.h"
#include "uring_io.h"
#include "weft/io/descriptor.h"

namespace weft::inline v0::detail {

BufferPool* UringIO::make_pool() {
  try {
    return buffers_ = new UringBuffers(*this, ring_);
  } catch (const std::system_error&) {
    return PlatformIO::make_pool();
  }
}

bool UringIO::may_read_ahead(const UringEntry& entry) const noexcept {
  return abilities_.reads_ahead && entry.is_socket && entry.is_plain;  // V5
}

bool UringIO::begin_pooled(IoOperation& operation) noexcept {
  if (buffers_ && !chaos().one_in(4)) {
    submit_pooled(operation);
  } else if (!operation.entry->is_file) {
    poll_for(operation);
  } else if (take_buffer(operation)) {
    submit(operation);
  } else {
    operation.result = -ENOMEM;
    return true;
  }
  return false;
}

// The kernel chooses the buffer, when it has bytes for it.
void UringIO::submit_pooled(IoOperation& operation) noexcept {
  UringEntry& entry = entry_of(operation);
  if (!may_read_ahead(entry)) return submit(operation);
  entry.reader_waits = true;
  read_ahead(entry);
}

// There are bytes, and the kernel has no buffer of ours for them.
void UringIO::submit_with_buffer(IoOperation& operation) noexcept {
  if (take_buffer(operation)) return submit(operation);
  finish(operation, -ENOMEM);
}

void UringIO::try_again(IoOperation& operation) noexcept {
  if (operation.code != IoCode::read_pooled) return submit(operation);
  bool in_stock = buffers_ && buffers_->stock() > 0 && !chaos().one_in(4);
  in_stock ? submit_pooled(operation) : submit_with_buffer(operation);
}

void UringIO::read_ahead(UringEntry& entry) noexcept {
  io_uring_sqe& sqe = ring_.next_entry().sqe;
  sqe.opcode = IORING_OP_RECV;
  sqe.fd = entry.fd;
  sqe.ioprio = IORING_RECV_MULTISHOT;
  // Not POLL_FIRST, even where there is nothing: a multishot recv that has polled before it first read, and then read all the bytes
  // there were, waits for the next event; and a reset that had come along with them is none (seen on Linux 6.18).
  sqe.flags = IOSQE_BUFFER_SELECT;
  sqe.buf_group = UringBuffers::kGroup;
  sqe.user_data = address_of(&entry) | kStream;
  entry.reads_ahead = true;
  entry.stopping = false;
}

void UringIO::stop_reading_ahead(UringEntry& entry) noexcept {
  if (entry.stopping || ending_) return;
  entry.stopping = true;
  submit_cancel(address_of(&entry) | kStream);
}

void UringIO::received(UringEntry& entry, std::int32_t result, std::uint32_t flags) noexcept {
  if (!(flags & IORING_CQE_F_MORE)) entry.reads_ahead = false;
  if (result <= 0) {
    // Some kernels say which buffer the end of the stream is in.
    if (flags & IORING_CQE_F_BUFFER) BufferPool::give_back(buffers_->taken(flags));
    return ended_reading_ahead(entry, result);
  }
  entry.drained = !(flags & IORING_CQE_F_SOCK_NONEMPTY);
  PooledBuffer& buffer = buffers_->taken(flags);
  buffer.offset = 0;
  buffer.length = static_cast<std::uint32_t>(result);
  entry.kept.push(buffer);
  if (entry.reads_ahead && (entry.kept.count() >= Descriptor::kReadAheadMax || chaos().one_in(8))) {
    stop_reading_ahead(entry);
  }
  if (!std::exchange(entry.reader_waits, false)) return;
  IoOperation& reader = *entry.reader;
  static_cast<void>(take_kept(reader));
  finish(reader, reader.result);
}

void UringIO::ended_reading_ahead(UringEntry& entry, std::int32_t result) noexcept {
  // The end of the stream, or a want of buffers, the next reader will meet again. An error is said once.
  const bool goes_on =
      result == -ECANCELED || result == -EINTR || result == -EAGAIN || result == -ENOBUFS;
  if (result < 0 && !goes_on) entry.kept_error = result;
  if (!std::exchange(entry.reader_waits, false)) return;
  IoOperation& reader = *entry.reader;
  if (!goes_on) return finish(reader, take_kept(reader) ? reader.result : 0);
  if (reader.code != IoCode::read_pooled) return submit(reader);  // V4
  if (result == -EAGAIN || buffers_->stock() == 0) return poll_for(reader);
  submit_pooled(reader);
}

}  // namespace weft::inline v0::detail
