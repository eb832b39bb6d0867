// expect: name the lambda first
// only: gcc
// SPDX-License-Identifier: MIT
#include <memory>

#include "weft/weft.h"

weft::Task<int> user(std::unique_ptr<int> held) {
  co_return co_await [held = std::move(held)]() -> weft::Task<int> { co_return *held; };
}
