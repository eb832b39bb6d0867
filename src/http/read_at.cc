// SPDX-License-Identifier: MIT
#include "read_at.h"

#include <sys/uio.h>

namespace weft::inline v0::http::detail {

Task<Result<std::size_t>> read_at(Descriptor& file, std::span<std::byte> room,
                                  std::uint64_t offset) {
  iovec part{.iov_base = room.data(), .iov_len = room.size()};
  ssize_t count = ::preadv2(file.number(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  if (count > 0) co_return static_cast<std::size_t>(count);
  co_return co_await file.pread(room, static_cast<std::int64_t>(offset));
}

}  // namespace weft::inline v0::http::detail
