// SPDX-License-Identifier: MIT
#include "weft/sync/sharing.h"

#include <cstdlib>
#include <string>

#include "weft/base/log.h"

namespace weft::inline v0::detail {

void OnOneLoop::LoopBond::bind(std::uint32_t home, const char* what) noexcept {
  if (home_ == 0) {
    home_ = home;
    return;
  }
  log(LogLevel::error,
      std::string(what) + (home ? " on loop " + std::to_string(home) : " off any loop") +
          ", but loop " + std::to_string(home_) +
          " uses it: a Local form belongs to the first loop that uses it. Between loops use the "
          "form without Local.");
  std::abort();
}

}  // namespace weft::inline v0::detail
