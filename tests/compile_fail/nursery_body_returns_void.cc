// expect: with_nursery
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

weft::Task<void> user() {
  auto body = [](weft::Nursery&) -> weft::Task<void> { co_return; };
  co_await weft::with_nursery(body);
}
