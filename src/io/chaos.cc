// SPDX-License-Identifier: MIT
#include "weft/io/chaos.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "weft/atomic/atomic.h"
#include "weft/base/log.h"

namespace weft::inline v0::detail {

namespace {

std::uint64_t seed_given() noexcept {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("WEFT_CHAOS_SEED");
    std::uint64_t value = given ? std::strtoull(given, nullptr, 10) : 0;
    if (value) log(LogLevel::info, "weft: chaos, WEFT_CHAOS_SEED=" + std::to_string(value));
    return value;
  }();
  return seed;
}

}  // namespace

bool Chaos::enabled() noexcept { return seed_given() != 0; }

Chaos::Chaos() noexcept : state_(0) {
  if (!enabled()) return;
  static Atomic<std::uint64_t> made{0};
  state_ = (seed_given() + made.fetch_add(1, relaxed)) * 0x9e3779b97f4a7c15u | 1;
}

std::uint64_t Chaos::next() noexcept {  // xorshift64
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_;
}

void Chaos::dawdle() noexcept {
  if (!on()) [[likely]]
    return;
  std::uint64_t what = next() % 64;
  if (what == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(next() % 50));
  } else if (what < 16) {
    std::this_thread::yield();
  }
}

}  // namespace weft::inline v0::detail
