// SPDX-License-Identifier: MIT
// weft in suite runtime: tasks on an IOContext.
//
// Options are the defaults but for the number of workers and, where two loops play ping-pong, the
// spinning: long enough never to sleep when busy, none when asleep.
#include <weft/run/io_context.h>
#include <weft/weft.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/contestant.h"
#include "harness/threads.h"
#include "runtime/timers.h"
#include "runtime/weft_child.h"

namespace weft::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 1000;  // the same in every contestant
constexpr std::size_t kWarmUpRounds = 1000;

// --- ping-pong ----------------------------------------------------------------------------------

// One task that goes to the other loop and comes back.
Task<void> hop(Executor& near, Executor& far, std::size_t rounds, std::string& answer) {
  const Cores cores = two_cores();
  pin_this_thread(cores.first);
  co_await resume_on(far);
  pin_this_thread(cores.last);
  co_await resume_on(near);
  Stopwatch watch;
  for (std::size_t round = 0; round < kWarmUpRounds + rounds; ++round) {
    if (round == kWarmUpRounds) watch.restart();
    co_await resume_on(far);
    co_await resume_on(near);
  }
  answer = watch.per_operation(rounds);
}

Task<std::string> hop_between(IOContext& context, std::size_t rounds) {
  std::string answer;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(hop(context.loop(0), context.loop(1), rounds, answer));
    co_return join;
  };
  co_await with_nursery(body);
  co_return answer;
}

// On a thread of its own: run() drives loop 0 on the thread that calls it, and that gets pinned.
template <class Make>
std::string pingpong(std::size_t n, Make make) {
  (void)two_cores();  // throws here, not there
  std::string answer;
  std::thread caller([&] {
    IOContext context = make();
    answer = context.run(hop_between(context, n));
  });
  caller.join();
  return answer;
}

std::string pingpong_busy(std::size_t n) {
  return pingpong(n, [] { return IOContext({.workers = 2, .spin = 10'000us}); });
}

// On epoll, as the floor is.
std::string pingpong_sleeping(std::size_t n) {
  return pingpong(n,
                  [] { return IOContext({.workers = 2, .driver = Driver::epoll, .spin = 0us}); });
}

// --- two workers --------------------------------------------------------------------------------

Task<std::string> spawn_batches(std::size_t n) {
  const std::size_t batches = (n + kBatch - 1) / kBatch;
  auto batch = [](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < kBatch; ++i) nursery.schedule(weft_nothing());
    co_return join;
  };
  Stopwatch watch;
  for (std::size_t i = 0; i < batches; ++i) co_await with_nursery(batch);
  co_return watch.per_operation(batches * kBatch);
}

// --- timers -------------------------------------------------------------------------------------

// The bare timer, as Asio's and tokio's: what a sleeping task has in its frame.
Task<std::string> arm_and_cancel(std::size_t n) {
  Executor& loop = Executor::current("timer_arm_cancel");
  auto arm = [&](detail::TimerNode& timer, std::size_t i) {
    const TimePoint deadline = now() + kFar + spread(i, kFarSpread);
    loop.arm_timer(timer, deadline.time_since_epoch().count());
  };
  std::vector<detail::TimerNode> outstanding(kOutstanding);
  for (std::size_t i = 0; i < kOutstanding; ++i) arm(outstanding[i], i);
  detail::TimerNode timer;
  Stopwatch watch;
  for (std::size_t pair = 0; pair < n; ++pair) {
    arm(timer, pair);
    loop.disarm_timer(timer);
  }
  std::string answer = watch.per_operation(n);
  for (detail::TimerNode& armed : outstanding) loop.disarm_timer(armed);
  co_return answer;
}

// What a program writes: a deadline over something that is not ready at once.
Task<std::string> time_out_pending(std::size_t n) {
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) {
    const auto in_time = co_await timeout(kFar, weft::yield());
    if (!in_time) throw std::runtime_error("an hour has passed");
  }
  co_return watch.per_operation(n);
}

// Returns: nothing, if the first was due before the last was asleep.
Task<std::string> fire_all_after(std::chrono::nanoseconds arming, std::size_t n) {
  std::size_t asleep = 0;
  bool late = false;
  Stopwatch watch;
  const auto first_due_wall = std::chrono::steady_clock::now() + arming;
  const TimePoint first_due = now() + arming;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < n; ++i)
      nursery.start(weft_sleeper(first_due + spread(i, kWindow), asleep));
    while (asleep < n) co_await weft::yield();
    late = now() > first_due;
    watch.restart_wall_at(first_due_wall);
    co_return join;
  };
  co_await with_nursery(body);
  std::string answer = watch.per_operation(n);
  if (late) answer.clear();
  co_return answer;
}

// On a busy machine tasks take longer to fall asleep.
Task<std::string> fire_all(std::size_t n) {
  for (std::chrono::nanoseconds arming = kArming; arming <= kArmingMax; arming *= 2) {
    std::string answer = co_await fire_all_after(arming, n);
    if (!answer.empty()) co_return answer;
  }
  throw std::runtime_error("the first was due before the last was asleep");
}

Task<std::string> cancel_all_sleeping(std::size_t n) {
  std::size_t asleep = 0;
  Stopwatch watch;
  const TimePoint far = now() + kFar;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < n; ++i)
      nursery.start(weft_sleeper(far + spread(i, kFarSpread), asleep));
    while (asleep < n) co_await weft::yield();
    watch.restart();
    co_return cancel;
  };
  co_await with_nursery(body);
  co_return watch.per_operation(n);
}

// A fresh context for every sample.
template <Task<std::string> (*measure)(std::size_t), unsigned workers>
std::string on_a_context(std::size_t n) {
  IOContext context({.workers = workers});
  return context.run(measure(n));
}

constexpr Measure kMeasures[] = {
    {"pingpong_busy", pingpong_busy},
    {"pingpong_sleeping", pingpong_sleeping},
    {"spawn_join_mt", on_a_context<spawn_batches, 2>},
    {"timer_arm_cancel", on_a_context<arm_and_cancel, 1>},
    {"timeout_pending", on_a_context<time_out_pending, 1>},
    {"timer_fire", on_a_context<fire_all, 1>},
    {"cancel_sleeping", on_a_context<cancel_all_sleeping, 1>},
};

}  // namespace
}  // namespace weft::bench

int main() {
  (void)weft::bench::allowed_cores();
  return weft::bench::serve("weft on an IOContext; clang " __clang_version__,
                            weft::bench::kMeasures);
}
