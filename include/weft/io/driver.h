// SPDX-License-Identifier: MIT
#pragma once
// weft::Driver: by which means of the kernel a loop waits for descriptors.
//
// `automatic` takes io_uring where the kernel has what weft needs of it and allows its use, else
// epoll. The environment's WEFT_DRIVER=io_uring, epoll or poll overrides what a program asks for;
// anything else it says is a UsageError. What was chosen is logged once per process and driver.
#include <memory>
#include <string_view>

namespace weft::inline v0 {

class PlatformIO;

enum class Driver { automatic, io_uring, epoll, poll };

[[nodiscard]] std::string_view to_string(Driver driver) noexcept;

// Returns: what a loop that asks for `wanted` gets here: never automatic. Throws UsageError if
// WEFT_DRIVER is no driver, std::system_error if `wanted` is io_uring, by name, and the kernel has
// none for us.
[[nodiscard]] Driver choose_driver(Driver wanted);

// Returns: a driver whose poll() also ends when `wake_fd`, an eventfd, is written to. Requires:
// called on the thread that will drive the loop; `driver` is not automatic.
[[nodiscard]] std::unique_ptr<PlatformIO> make_platform_io(Driver driver, int wake_fd);

}  // namespace weft::inline v0
