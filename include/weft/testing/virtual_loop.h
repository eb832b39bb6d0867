// SPDX-License-Identifier: MIT
#pragma once
// weft::testing::VirtualLoop: a loop whose time stands still until nothing else is left to do.
//
//     VirtualLoop loop;
//     run(loop, my_test());                 // sleep_for(1h) takes no time at all
//
// A test on it is deterministic. Time jumps to the next timer when no task can run. If there is no
// timer either and the task has not ended, it never will: run() throws Stuck, with the task tree in
// what(), instead of hanging.
//
// Several loops share one thread and one clock: VirtualLoop other(loop). Running any of them drives
// them all, so tests of tasks on different loops need no threads.
//
// A loop that is destroyed cancels the guests that it has, and runs them to their end.
//
// shuffle(seed) picks among the ready tasks in another order, the same for the same seed; tests
// that state an order leave it off.
//
// Threads        one thread drives all loops of a clock. post() from any thread, but a wait for
//                another thread is not idle time that it knows of: use ThreadLoop for those.
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "weft/core/run.h"
#include "weft/time/timer_wheel.h"

namespace weft::inline v0::testing {

// Nothing can run, nothing is due, and the task that run() waits for has not ended.
class Stuck : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class VirtualLoop final : public Loop {
 public:
  VirtualLoop();
  // Another loop in the same thread, with the same clock.
  explicit VirtualLoop(VirtualLoop& beside);
  ~VirtualLoop() override;

  // Virtual time since the clock was made.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept;
  // The seed of shuffle(), 0 if it is off.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  // From now on; 0 turns it off.
  void shuffle_by(std::uint64_t seed) noexcept {
    seed_ = seed;
    shuffle(seed);
  }

  // Runs whatever can run now, without letting time pass: on this loop and those beside it.
  void run_ready();

  void drive(detail::RootWaiter& root) override;
  [[nodiscard]] std::int64_t now_ns() const override;
  void arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) override;
  void disarm_timer(detail::TimerNode& timer) noexcept override;

 private:
  struct World {
    std::int64_t now_ns = 0;
    std::vector<VirtualLoop*> loops;
  };

  // Returns: false if nothing can run and nothing is due.
  template <class Over>
  bool run_until(Over over);
  static bool step_all(World& world);
  static bool advance(World& world);

  std::shared_ptr<World> world_;
  detail::TimerWheel timers_;
  std::uint64_t seed_ = 0;
};

}  // namespace weft::inline v0::testing
