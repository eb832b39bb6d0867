// SPDX-License-Identifier: MIT
// The floor of suite core: a bare coroutine with a free list of frames.
#include "core/floor_task.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

FloorTask await_children(std::size_t n, std::string& answer) {
  int sum = 0;
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) sum ^= co_await floor_child(static_cast<int>(i & 1023));
  answer = watch.per_operation(n);
  co_return sum;
}

std::string await_child(std::size_t n) {
  std::string answer;
  [[maybe_unused]] volatile int sum = await_children(n, answer).run();
  return answer;
}

constexpr Measure kMeasures[] = {{"await_child", await_child}};

}  // namespace
}  // namespace weft::bench

int main() {
  return weft::bench::serve(
      "bare coroutine, thread-local free list, symmetric transfer; clang " __clang_version__,
      weft::bench::kMeasures);
}
