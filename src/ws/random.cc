// SPDX-License-Identifier: MIT
#include "random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "weft/base/assert.h"

namespace weft::inline v0::ws::detail {

void RandomBytes::fill(std::span<std::uint8_t> out) {
  WEFT_ASSERT(out.size() <= kBytes, "RandomBytes::fill() of more than it holds");
  if (kBytes - used_ < out.size()) {
    ssize_t count;
    do {
      count = ::getrandom(stock_.data(), stock_.size(), 0);
    } while (count < 0 && errno == EINTR);
    WEFT_ASSERT(count == static_cast<ssize_t>(kBytes), "getrandom() has no random bytes");
    used_ = 0;
  }
  std::memcpy(out.data(), stock_.data() + used_, out.size());
  // Nobody who reads our memory later learns a mask that was used.
  std::memset(stock_.data() + used_, 0, out.size());
  used_ += out.size();
}

}  // namespace weft::inline v0::ws::detail
