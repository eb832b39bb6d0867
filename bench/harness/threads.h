// SPDX-License-Identifier: MIT
#pragma once
// weft::bench: which core a thread runs on. For measures whose two sides must not share one.

namespace weft::bench {

// The cores that this process may use, as it was started; first and last of them.
struct Cores {
  int first;
  int last;
  int count;
};
[[nodiscard]] Cores allowed_cores();

// Moves the calling thread, and threads that it starts later, to one core.
// Throws: std::system_error.
void pin_this_thread(int core);

// The two cores of a measure across threads. Throws: std::runtime_error if there is only one.
[[nodiscard]] Cores two_cores();

}  // namespace weft::bench
