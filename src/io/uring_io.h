// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::UringIO: the driver over io_uring.
#include <memory>

#include "weft/io/platform_io.h"

namespace weft::inline v0::detail {

// Returns: 0 if this kernel, and this process's rights, have what the driver needs; else an errno.
// Asked once per process.
[[nodiscard]] int uring_error() noexcept;

[[nodiscard]] std::unique_ptr<PlatformIO> make_uring_io(int wake_fd);

}  // namespace weft::inline v0::detail
