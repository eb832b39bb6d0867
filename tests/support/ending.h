// SPDX-License-Identifier: MIT
#pragma once
// How something ended, for tests that ask.
#include <chrono>
#include <exception>
#include <string>

#include "support/loop_fixture.h"

namespace weft::test {

// Starts what `subject` returns, cancels it from outside at 1 ms, and says how it ended; Stuck if it
// does not.
template <class Fn>
Outcome<void> cancelled_midway(weft::testing::VirtualLoop& loop, Fn& subject) {
  auto root = [&]() -> Task<Outcome<void>> {
    StartedTask<void> s = subject().start_in_current_scope();
    co_await sleep_for(std::chrono::milliseconds(1));
    s.cancel();
    co_return co_await s.outcome();
  };
  return run(loop, root());
}

// Requires: the error is a std::exception.
inline std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  }
}

}  // namespace weft::test
