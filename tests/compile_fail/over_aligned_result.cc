// expect: g++ cannot place a Task whose result is aligned to more than 16 bytes
// only: gcc
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

struct alignas(64) Wide {
  int value = 0;
};
weft::Task<Wide> make() { co_return Wide(); }
