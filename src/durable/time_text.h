// SPDX-License-Identifier: MIT
#pragma once
// Times, for people who read errors and the task tree.
#include <chrono>
#include <string>

namespace weft::inline v0::durable::detail {

// "0.3 s".
inline std::string in_seconds(std::chrono::nanoseconds time) {
  std::string text = std::to_string(std::chrono::duration<double>(time).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

// "131 ms".
inline std::string brief(std::chrono::microseconds time) {
  if (time < std::chrono::milliseconds(1)) return std::to_string(time.count()) + " us";
  if (time < std::chrono::seconds(10)) return std::to_string(time.count() / 1000) + " ms";
  return std::to_string(time.count() / 1'000'000) + " s";
}

}  // namespace weft::inline v0::durable::detail
