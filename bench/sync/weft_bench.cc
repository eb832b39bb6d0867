// SPDX-License-Identifier: MIT
// weft in suite sync: tasks on an IOContext, with its default options but for the number of workers.
#include <weft/weft.h>

#include <string>

#include "harness/contestant.h"

namespace weft::bench {
namespace {

constexpr std::size_t kTasks = 1000;  // the same in every contestant
constexpr std::size_t kCapacity = 1024;

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

// --- Channel ------------------------------------------------------------------------------------

using SharedItems = Channel<std::size_t>;
using LocalItems = LocalChannel<std::size_t>;

template <class Items>
Task<void> produce(Items& channel, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) co_await channel.send(std::size_t{i});
  channel.close();
}

template <class Items>
Task<void> consume(Items& channel, std::size_t& sum) {
  while (auto item = co_await channel.receive()) sum += *item;
}

// One task sends, the other, on the loop `there`, receives, one by one. Both are ready when the clock
// starts.
template <class Items>
Task<std::string> pass(Items& channel, EventLoop& here, EventLoop& there, std::size_t n) {
  std::size_t sum = 0;
  Stopwatch watch;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start_on(there, consume(channel, sum));
    nursery.start_on(here, produce(channel, n));
    watch.restart();
    co_return join;
  };
  co_await with_nursery(body);
  if (sum != n * (n - 1) / 2) co_return "error items were lost";
  co_return watch.per_operation(n);
}

template <class Items, std::size_t capacity, std::size_t there = 0>
Task<std::string> channel(IOContext& context, std::size_t n) {
  Items items(capacity);
  co_return co_await pass(items, context.loop(0), context.loop(there), n);
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
    {"channel_one_loop", on_a_context<channel<SharedItems, kCapacity>, 1>},
    {"local_channel_one_loop", on_a_context<channel<LocalItems, kCapacity>, 1>},
    {"channel_two_loops", on_a_context<channel<SharedItems, kCapacity, 1>, 2>},
    {"rendezvous_one_loop", on_a_context<channel<SharedItems, 0>, 1>},
    {"local_rendezvous_one_loop", on_a_context<channel<LocalItems, 0>, 1>},
    {"rendezvous_two_loops", on_a_context<channel<SharedItems, 0, 1>, 2>},
};

}  // namespace
}  // namespace weft::bench

int main() {
  return weft::bench::serve("weft on an IOContext; clang " __clang_version__,
                            weft::bench::kMeasures);
}
