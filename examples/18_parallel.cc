// SPDX-License-Identifier: MIT
// One function over many elements, on all workers.
//
// Run: build/release/examples/18_parallel
// See: results in order, a sum, and how the first error ends the rest.
#include <cstdio>
#include <functional>
#include <ranges>
#include <stdexcept>
#include <vector>

#include "weft/weft.h"

using namespace weft;

int divisors(int n) {
  int count = 0;
  for (int d = 1; d <= n; ++d) count += n % d == 0;
  return count;
}

Task<> async_main() {
  // [parallel]
  std::vector<int> counts = co_await parallel_transform(std::views::iota(1, 2001), divisors);
  std::printf("12 has %d divisors, 1999 has %d\n", counts[11], counts[1998]);

  long sum = co_await parallel_reduce(counts, 0L, std::plus<>());
  std::printf("together %ld\n", sum);
  // [/parallel]

  // [error]
  auto check = [](int n) {
    if (n == 700) throw std::runtime_error("700 is not liked here");
  };
  try {
    co_await parallel_for(0, 1000, check);
  } catch (const std::runtime_error& error) {
    std::printf("%s\n", error.what());
  }
  // [/error]
}

int main() {
  IOContext ctx;
  ctx.run(async_main());
}
