// SPDX-License-Identifier: MIT
#include "weft/base/unique_fd.h"

#include <unistd.h>

#include <cerrno>

#include "weft/base/assert.h"

namespace weft::inline v0 {

void UniqueFd::reset(int fd) noexcept {
  const int old = std::exchange(fd_, fd < 0 ? -1 : fd);
  if (old < 0) return;
  WEFT_ASSERT(old != fd_, "a descriptor that is owned already is not taken over again");
  const int saved_errno = errno;
  // No retry after EINTR: Linux has released the descriptor by then, and another thread may have
  // it.
  if (::close(old) != 0) {
    WEFT_ASSERT(errno != EBADF, "a file descriptor is closed once, by its owner");
  }
  errno = saved_errno;
}

}  // namespace weft::inline v0
