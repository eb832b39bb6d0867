// SPDX-License-Identifier: MIT
// Threads that weft knows nothing of: they start children in a scope, and they cancel tasks.
//
// Run: build/release/examples/11_leases_across_threads
// See: children started by three threads, all run by one loop; a task on another loop, awaited from
//      here; a task cancelled by a thread, and the reason that it gave.
#include <cstdio>
#include <thread>
#include <vector>

#include "weft/testing/thread_loop.h"
#include "weft/weft.h"

using namespace weft;

Task<> add(int n, int& sum) {
  co_await yield();
  sum += n;
}

// [lease]
Task<> children_from_threads() {
  int sum = 0;  // plain: a scope's children run on its home loop, whoever started them
  std::vector<std::jthread> threads;
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    for (int i = 1; i <= 3; ++i) {
      threads.emplace_back([lease = n.lease(), i, &sum] {
        for (int round = 0; round < 100; ++round) lease.start(add(i, sum));
      });
    }
    co_return join;  // waits for the children and for the leases
  };
  co_await with_nursery(body);
  std::printf("three threads started 300 children; the sum is %d\n", sum);
}
// [/lease]

Task<std::thread::id> where_am_i() { co_return std::this_thread::get_id(); }

// [elsewhere]
Task<> await_another_loop(PromiseChildLease there) {
  StartedTask<std::thread::id> task = where_am_i().start_with_parent_scope(std::move(there));
  std::thread::id home = std::this_thread::get_id();
  std::thread::id ran_on = co_await std::move(task);
  std::printf("it ran on another thread: %s; we are back at home: %s\n",
              ran_on != home ? "yes" : "no", home == std::this_thread::get_id() ? "yes" : "no");
}
// [/elsewhere]

Task<> parked() { co_await suspend_forever(); }

// [cancel]
constexpr CancelReason kWatchdog{"the watchdog had enough"};

Task<> cancelled_by_a_thread(PromiseChildLease there) {
  StartedTask<> task = parked().start_with_parent_scope(std::move(there));
  std::jthread watchdog([handle = task.cancel_handle()] { handle.cancel(kWatchdog); });
  Outcome<void> how = co_await task.outcome();
  std::printf("cancelled: %s\n", how.is_cancelled() ? how.reason().what : "no");
}
// [/cancel]

int main() {
  testing::LoopThread other;
  testing::ThreadLoop here;
  run(here, children_from_threads());
  run(here, await_another_loop(other.lease()));
  run(here, cancelled_by_a_thread(other.lease()));
}
