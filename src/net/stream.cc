// SPDX-License-Identifier: MIT
#include "weft/net/stream.h"

#include "weft/base/assert.h"

namespace weft::inline v0::net {

void drop_front(std::span<Part>& parts, std::size_t count) noexcept {
  while (!parts.empty() && count >= parts.front().size()) {
    count -= parts.front().size();
    parts = parts.subspan(1);
  }
  WEFT_ASSERT(count == 0 || !parts.empty(), "a stream wrote more than it was given");
  while (!parts.empty() && parts.back().size() == 0) parts = parts.first(parts.size() - 1);
  if (count > 0) parts.front() = Part(parts.front().bytes().subspan(count));
}

}  // namespace weft::inline v0::net
