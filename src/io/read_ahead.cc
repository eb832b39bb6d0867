// SPDX-License-Identifier: MIT
#include "read_ahead.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace weft::inline v0::detail {

namespace {

std::int32_t copy(const KeptBuffers& kept, std::span<const iovec> parts) noexcept {
  std::size_t sum = 0;
  const PooledBuffer* from = kept.first();
  std::size_t taken = 0;  // of *from
  for (const iovec& part : parts) {
    for (std::size_t filled = 0; from && filled < part.iov_len;) {
      std::size_t count = std::min(part.iov_len - filled, from->length - taken);
      std::memcpy(static_cast<std::byte*>(part.iov_base) + filled, from->data() + taken, count);
      filled += count;
      taken += count;
      sum += count;
      if (taken == from->length) {
        from = from->next;
        taken = 0;
      }
    }
  }
  return static_cast<std::int32_t>(sum);
}

// Returns: how many bytes copy() would.
std::int32_t count(const KeptBuffers& kept, std::span<const iovec> parts) noexcept {
  std::size_t room = 0;
  for (const iovec& part : parts) room += part.iov_len;
  std::size_t there = 0;
  for (const PooledBuffer* from = kept.first(); from; from = from->next) there += from->length;
  return static_cast<std::int32_t>(std::min(room, there));
}

void consume(KeptBuffers& kept, std::size_t bytes) noexcept {
  while (bytes > 0) {
    PooledBuffer& first = *kept.first();
    auto count = static_cast<std::uint32_t>(std::min<std::size_t>(bytes, first.length));
    first.offset += count;
    first.length -= count;
    bytes -= count;
    if (first.length == 0) BufferPool::give_back(kept.pop());
  }
}

std::int32_t take_message(KeptBuffers& kept, IoOperation& operation) noexcept {
  auto& message = *static_cast<msghdr*>(operation.address);
  message.msg_namelen = 0;
  message.msg_controllen = 0;
  message.msg_flags = 0;
  const std::span<const iovec> parts(message.msg_iov, message.msg_iovlen);
  // A stream's way to pass over bytes: nothing is stored.
  std::int32_t bytes = operation.flags & MSG_TRUNC ? count(kept, parts) : copy(kept, parts);
  if (!(operation.flags & MSG_PEEK)) consume(kept, static_cast<std::size_t>(bytes));
  return bytes;
}

}  // namespace

bool takes_stream(const IoOperation& operation) noexcept {
  if (!reads(operation.code) || operation.code == IoCode::accept) return false;
  if (operation.code == IoCode::recvmmsg) return false;  // datagrams are not read ahead
  return operation.code != IoCode::recvmsg || !(operation.flags & (MSG_OOB | MSG_ERRQUEUE));
}

bool take_kept(IoOperation& operation) noexcept {
  IoEntry& entry = *operation.entry;
  if (!entry.has_read_ahead() || !takes_stream(operation)) return false;
  KeptBuffers& kept = entry.kept;
  if (kept.empty()) {
    operation.result = operation.code == IoCode::readable ? 0 : std::exchange(entry.kept_error, 0);
    return true;
  }
  switch (operation.code) {
    case IoCode::read_pooled: {
      PooledBuffer& buffer = kept.pop();
      operation.second = &buffer;
      operation.result = static_cast<std::int32_t>(buffer.length);
      return true;
    }
    case IoCode::read: {
      const iovec part{operation.address, operation.length};
      operation.result = copy(kept, {&part, 1});
      consume(kept, static_cast<std::size_t>(operation.result));
      return true;
    }
    case IoCode::readv:
      operation.result = copy(kept, {static_cast<iovec*>(operation.address), operation.length});
      consume(kept, static_cast<std::size_t>(operation.result));
      return true;
    case IoCode::recvmsg:
      operation.result = take_message(kept, operation);
      return true;
    default:
      operation.result = 0;  // readable
      return true;
  }
}

}  // namespace weft::inline v0::detail
