// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Chaos: the hostile mode. With WEFT_CHAOS_SEED=<number> in the environment, loops
// shuffle what they resume, workers steal at odd times and in odd portions, threads dawdle where a
// race could be, and streams are read and written in pieces. All of that is allowed at any time; this
// makes it happen. A program that breaks by it has a bug that waited for a bad day.
//
// Threads        each loop has its own; everything but enabled() belongs to the loop's thread.
#include <cstddef>
#include <cstdint>

namespace weft::inline v0::detail {

class Chaos {
 public:
  // Whether the environment asks for it. Read once per process.
  [[nodiscard]] static bool enabled() noexcept;
  // A generator of its own, in the order in which loops are made; off, if it is not asked for.
  Chaos() noexcept;

  [[nodiscard]] bool on() const noexcept { return state_ != 0; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return state_; }
  // Requires: on().
  [[nodiscard]] std::uint64_t next() noexcept;
  [[nodiscard]] bool one_in(unsigned n) noexcept { return on() && next() % n == 0; }
  // `most`, or less.
  [[nodiscard]] std::size_t portion(std::size_t most) noexcept {
    return on() && most > 1 ? 1 + next() % most : most;
  }
  // A moment, now and then.
  void dawdle() noexcept;

 private:
  std::uint64_t state_;
};

}  // namespace weft::inline v0::detail
