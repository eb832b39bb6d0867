// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::StateMutex: guards a few instructions and nothing else: no call out, no allocation, no
// wait is made with it held.
//
// One exchange to take it and one store to leave it: half of what a std::mutex costs, in one byte.
// Whoever finds it taken looks again for a while, then lets others run, then sleeps for a moment: so a
// holder that was interrupted goes on, also if those who look have a higher priority.
//
// Included by atomic.h: under a model checker its own takes this place.
#include <atomic>
#include <chrono>
#include <thread>

#include "weft/atomic/pause.h"

namespace weft::inline v0::detail {

class StateMutex {
 public:
  StateMutex() = default;
  StateMutex(const StateMutex&) = delete;
  StateMutex& operator=(const StateMutex&) = delete;

  void lock() noexcept {
    // acquire: what the last holder did. [pairs with unlock()]
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      lock_contended();
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kLooks = 200;
  static constexpr int kYields = 100;
  static constexpr auto kSleep = std::chrono::microseconds(50);

  [[gnu::noinline]] void lock_contended() noexcept {
    int rounds = 0;
    do {
      if (rounds > kYields) {
        std::this_thread::sleep_for(kSleep);
      } else if (rounds > 0) {
        std::this_thread::yield();
      }
      ++rounds;
      for (int i = 0; i < kLooks && taken_.load(std::memory_order_relaxed); ++i) pause_processor();
    } while (taken_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> taken_{false};
};

class StateLock {
 public:
  explicit StateLock(StateMutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~StateLock() { mutex_.unlock(); }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  StateMutex& mutex_;
};

}  // namespace weft::inline v0::detail
