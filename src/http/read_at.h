// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <span>

#include "weft/core/task.h"
#include "weft/io/descriptor.h"

namespace weft::inline v0::http::detail {

// Some bytes of a file. What the page cache has is read at once; the rest is the driver's. Returns: how many; 0: it has no more.
[[nodiscard]] Task<Result<std::size_t>> read_at(Descriptor& file, std::span<std::byte> room,
                                                std::uint64_t offset);

}  // namespace weft::inline v0::http::detail
