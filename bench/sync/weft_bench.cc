// SPDX-License-Identifier: MIT
// weft in suite sync: tasks on an IOContext, with its default options but for the number of workers.
#include <weft/weft.h>

#include <string>

#include "harness/contestant.h"

namespace weft::bench {
namespace {

constexpr std::size_t kTasks = 1000;  // the same in every contestant

// --- Mutex --------------------------------------------------------------------------------------

Task<std::string> lock_uncontended(IOContext&, std::size_t n) {
  Mutex mutex;
  std::size_t volatile inside = 0;
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) {
    auto lock = co_await mutex.lock();
    inside = inside + 1;
  }
  co_return watch.per_operation(n);
}

Task<void> lock_and_yield(Mutex& mutex, std::size_t rounds) {
  for (std::size_t i = 0; i < rounds; ++i) {
    auto lock = co_await mutex.lock();
    co_await yield();
  }
}

Task<std::string> contend_one_loop(IOContext&, std::size_t n) {
  Mutex mutex;
  Stopwatch watch;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto gate = co_await mutex.lock();
    for (std::size_t i = 0; i < kTasks; ++i) nursery.start(lock_and_yield(mutex, n / kTasks));
    co_await yield();
    co_await yield();
    watch.restart();
    co_return join;
  };
  co_await with_nursery(body);
  co_return watch.per_operation(n / kTasks * kTasks);
}

Task<std::string> contend_two_loops(IOContext& context, std::size_t n) {
  Mutex mutex;
  Stopwatch watch;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto gate = co_await mutex.lock();
    for (std::size_t i = 0; i < kTasks; ++i) {
      nursery.start_on(context.loop(i % 2), lock_and_yield(mutex, n / kTasks));
    }
    co_await sleep_for(std::chrono::milliseconds(20));  // all wait
    watch.restart();
    co_return join;
  };
  co_await with_nursery(body);
  co_return watch.per_operation(n / kTasks * kTasks);
}

// A fresh context for every sample.
template <Task<std::string> (*measure)(IOContext&, std::size_t), unsigned workers>
std::string on_a_context(std::size_t n) {
  IOContext context({.workers = workers});
  return context.run(measure(context, n));
}

constexpr Measure kMeasures[] = {
    {"lock_uncontended", on_a_context<lock_uncontended, 1>},
    {"contend_one_loop", on_a_context<contend_one_loop, 1>},
    {"contend_two_loops", on_a_context<contend_two_loops, 2>},
};

}  // namespace
}  // namespace weft::bench

int main() {
  return weft::bench::serve("weft on an IOContext; clang " __clang_version__,
                            weft::bench::kMeasures);
}
