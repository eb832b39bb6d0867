// SPDX-License-Identifier: MIT
#pragma once
// What tests of durable/ share.
#include <string>

#include "weft/durable/mutex.h"

namespace weft::test {

// An engine that nobody else has.
inline std::string fresh_store_url() {
  static int number = 0;
  return "memory://test-" + std::to_string(++number);
}

inline durable::MutexOptions named(std::string resource) {
  durable::MutexOptions options;
  options.resource_id = std::move(resource);
  return options;
}

}  // namespace weft::test
