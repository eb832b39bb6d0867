// SPDX-License-Identifier: MIT
#pragma once
// A condition whose failure is a finding.
#include <cstdlib>

namespace weft::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace weft::fuzz
