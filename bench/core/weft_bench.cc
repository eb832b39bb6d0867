// SPDX-License-Identifier: MIT
// weft in suite core: tasks on one ThreadLoop, run by the calling thread.
#include <weft/testing/thread_loop.h>
#include <weft/weft.h>

#include <utility>

#include "core/weft_child.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

constexpr std::size_t kBatch = 1000;  // the same in every contestant

Task<std::string> await_children(std::size_t n) {
  int sum = 0;
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) sum ^= co_await weft_child(static_cast<int>(i & 1023));
  std::string answer = watch.per_operation(n);
  [[maybe_unused]] volatile int keep = sum;
  co_return answer;
}

Task<std::string> spawn_batches(std::size_t n) {
  std::size_t ended = 0;
  const std::size_t batches = (n + kBatch - 1) / kBatch;
  auto batch = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < kBatch; ++i) nursery.start(weft_leaf(ended));
    co_return join;
  };
  Stopwatch watch;
  for (std::size_t i = 0; i < batches; ++i) co_await with_nursery(batch);
  co_return watch.per_operation(ended);
}

struct Yielders {
  std::size_t yields_each;
  int started = 0;
  int ended = 0;
  Stopwatch watch = {};
  std::string answer = {};
};

Task<void> yielder(Yielders& both) {
  if (++both.started == 2) both.watch.restart();
  for (std::size_t i = 0; i < both.yields_each; ++i) co_await weft::yield();
  if (++both.ended == 2) both.answer = both.watch.per_operation(2 * both.yields_each);
}

Task<std::string> yield_between_two(std::size_t n) {
  Yielders both{.yields_each = n / 2};
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(yielder(both));
    nursery.start(yielder(both));
    co_return join;
  };
  co_await with_nursery(body);
  co_return std::move(both.answer);
}

Task<std::string> cancel_all_parked(std::size_t n) {
  std::size_t parked = 0;
  Stopwatch watch;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < n; ++i) nursery.start(weft_parked(parked));
    while (parked < n) co_await weft::yield();
    watch.restart();
    co_return cancel;
  };
  co_await with_nursery(body);
  co_return watch.per_operation(n);
}

Task<std::string> park_and_weigh(std::size_t n) {
  std::size_t parked = 0;
  std::string answer;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    MemoryProbe probe;
    for (std::size_t i = 0; i < n; ++i) nursery.start(weft_parked(parked));
    while (parked < n) co_await weft::yield();
    answer = probe.per_task(n);
    co_return cancel;
  };
  co_await with_nursery(body);
  co_return answer;
}

template <Task<std::string> (*measure)(std::size_t)>
std::string on_a_loop(std::size_t n) {
  testing::ThreadLoop loop;
  return weft::run(loop, measure(n));
}

constexpr Measure kMeasures[] = {
    {"await_child", on_a_loop<await_children>},  {"spawn_join", on_a_loop<spawn_batches>},
    {"yield", on_a_loop<yield_between_two>},     {"cancel_parked", on_a_loop<cancel_all_parked>},
    {"parked_bytes", on_a_loop<park_and_weigh>},
};

}  // namespace
}  // namespace weft::bench

int main() {
  return weft::bench::serve("weft on testing::ThreadLoop, one thread; clang " __clang_version__,
                            weft::bench::kMeasures);
}
