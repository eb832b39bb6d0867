// SPDX-License-Identifier: MIT
// A Channel moves values on behalf of others: nobody could catch what a move throws.
// expect: send a std::unique_ptr of such a type
#include "weft/sync/channel.h"

struct Throws {
  Throws() = default;
  Throws(Throws&&) noexcept(false) {}
};

void misuse() { weft::Channel<Throws> channel(1); }
