// SPDX-License-Identifier: MIT
#include "uring_io.h"

#include <cerrno>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

int uring_error() noexcept { return ENOSYS; }

std::unique_ptr<PlatformIO> make_uring_io(int) {
  throw_usage_error("there is no io_uring driver yet");
}

}  // namespace weft::inline v0::detail
