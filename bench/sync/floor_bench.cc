// SPDX-License-Identifier: MIT
// The floor of suite sync: std::mutex, in a process that has a second thread: without one, the C library leaves the
// atomic operations out.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "harness/contestant.h"

namespace weft::bench {
namespace {

std::string lock_uncontended(std::size_t n) {
  std::mutex mutex;
  std::size_t volatile inside = 0;
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) {
    std::lock_guard lock(mutex);
    inside = inside + 1;
  }
  return watch.per_operation(n);
}

constexpr Measure kMeasures[] = {{"lock_uncontended", lock_uncontended}};

}  // namespace
}  // namespace weft::bench

int main() {
  std::jthread other([](std::stop_token stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
  });
  return weft::bench::serve("std::mutex; clang " __clang_version__, weft::bench::kMeasures);
}
