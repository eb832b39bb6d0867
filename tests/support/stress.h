// SPDX-License-Identifier: MIT
#pragma once
// What stress tests share: a seed that is printed, rounds that fit the build, books that must
// balance, and a dog that barks when nothing moves any more.
//
//     class MyStress : public weft::test::StressTest {};
//     TEST_F(MyStress, Something) { … books().started(); round(); … }
//
// Every task body holds a Life. At the end as many tasks have begun and ended as were started, and
// the frames handed out on all threads were released (frame_stats, summed when a thread exits).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/core/frame_pool.h"

namespace weft::test {

// splitmix64: small enough to be a task's argument, and any seed will do.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned n) noexcept { return static_cast<unsigned>(next() % n); }
  bool one_in(unsigned n) noexcept { return below(n) == 0; }
  [[nodiscard]] Random split() noexcept { return Random(next()); }
  // A moment, or none: moves two threads against each other.
  void dawdle() noexcept {
    unsigned spins = one_in(4) ? below(400) : 0;
    for (unsigned i = 0; i < spins; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    if (one_in(32)) std::this_thread::yield();
  }

 private:
  std::uint64_t state_;
};

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitized = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitized = false;
#endif

// Rounds are given as TSan runs them: 10^6 in all, over all stress tests. Elsewhere a part will do.
inline constexpr std::size_t kRoundsDivisor = kThreadSanitized ? 1 : 4;
constexpr std::size_t rounds(std::size_t under_tsan) { return under_tsan / kRoundsDivisor; }

// Relaxed everywhere: counters must not order what is being tested.
class Books {
 public:
  void started(std::int64_t n = 1) noexcept { started_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t open() const noexcept {
    return started_.load(std::memory_order_relaxed) - ended_.load(std::memory_order_relaxed);
  }
  std::atomic<std::int64_t> started_{0}, begun_{0}, ended_{0}, frames_{0}, rounds_{0};
};
inline Books& books() {
  static Books all;
  return all;
}

// Adds up frame_stats() of every thread that touched it, when it exits. Not for the main thread.
class FrameTally {
 public:
  FrameTally() = default;
  FrameTally(const FrameTally&) = delete;
  FrameTally& operator=(const FrameTally&) = delete;
  ~FrameTally() { books().frames_ += frame_stats().blocks_live; }
  static void touch() noexcept {
    thread_local FrameTally here;
    static_cast<void>(&here);
  }
};

// In every task body.
class Life {
 public:
  Life() noexcept { books().begun_.fetch_add(1, std::memory_order_relaxed); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
  ~Life() { books().ended_.fetch_add(1, std::memory_order_relaxed); }
};

// Counts a task as started, unless it dies before it began: because its loop takes no more.
class Ticket {
 public:
  Ticket() : valid_(true) { books().started(); }
  Ticket(Ticket&& other) noexcept : valid_(std::exchange(other.valid_, false)) {}
  Ticket& operator=(Ticket&&) = delete;
  ~Ticket() {
    if (valid_) books().started(-1);
  }
  void begun() noexcept { valid_ = false; }

 private:
  bool valid_;
};

// In every task: it may end on a thread that it did not begin on.
class Wanderer : public Life {
 public:
  Wanderer() { FrameTally::touch(); }
  Wanderer(const Wanderer&) = delete;
  Wanderer& operator=(const Wanderer&) = delete;
  ~Wanderer() { FrameTally::touch(); }
};

// Prints the tree of a loop's root nursery. Runs there.
inline Task<void> print_tree(std::atomic<int>& printed) {
  Scope& own = co_await current_scope();
  Scope* root = CancellationRuntime::strand_of(own).parent_link.parent();
  std::string text = task_tree(*root);
  std::fprintf(stderr, "%s\n", text.c_str());
  ++printed;
}

class StressTest : public ::testing::Test {
 protected:
  // 120 seconds without any progress: the tree, the seed, and the end.
  static constexpr auto kLookEvery = std::chrono::seconds(10);
  static constexpr int kLooksMax = 12;
  static constexpr int kSpinsMax = 32;

  StressTest() : seed_(choose_seed()), live_before_(frame_stats().blocks_live) {
    std::printf("[   SEED   ] WEFT_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    std::fflush(stdout);
    books().started_ = books().begun_ = books().ended_ = books().frames_ = books().rounds_ = 0;
    dog_ = std::thread([this] { watch(); });
  }
  ~StressTest() override {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    bell_.notify_one();
    dog_.join();
    EXPECT_EQ(books().begun_.load(), books().started_.load()) << "seed " << seed_;
    EXPECT_EQ(books().ended_.load(), books().started_.load()) << "seed " << seed_;
    std::int64_t here = frame_stats().blocks_live - live_before_;
    EXPECT_EQ(books().frames_.load() + here, 0) << "frames leaked; seed " << seed_;
    std::printf("[  ROUNDS  ] %lld (%lld tasks)\n", static_cast<long long>(books().rounds_),
                static_cast<long long>(books().started_));
  }

  [[nodiscard]] Random random(std::uint64_t stream) const { return Random(seed_ ^ (stream << 48)); }
  // The loops whose trees are printed if nothing moves. They outlive the fixture's use of them.
  void watch_loop(weft::testing::LoopThread* loop) {
    std::lock_guard lock(mutex_);
    loops_.push_back(loop);
  }
  void forget_loops() {
    std::lock_guard lock(mutex_);
    loops_.clear();
  }
  static void round() noexcept { books().rounds_.fetch_add(1, std::memory_order_relaxed); }
  // Not too many tasks at a time, so that memory stays bounded and loops fall asleep now and then.
  static void keep_below(std::int64_t open_max) {
    for (int spins = 0; books().open() >= open_max; ++spins) {
      if (spins < kSpinsMax) {
        std::this_thread::yield();
      } else {  // leave the processors to the loops
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }
  static void wait_until_all_ended() { keep_below(1); }

 private:
  static std::uint64_t choose_seed() {
    if (const char* given = std::getenv("WEFT_SEED")) return std::strtoull(given, nullptr, 10);
    return std::random_device{}() | 1u;
  }
  void watch() {
    std::int64_t seen = -1;
    int looks_left = kLooksMax;
    std::unique_lock lock(mutex_);
    while (!bell_.wait_for(lock, kLookEvery, [&] { return over_; })) {
      std::int64_t now = books().rounds_ + books().ended_ + books().begun_;
      looks_left = now == seen ? looks_left - 1 : kLooksMax;
      seen = now;
      if (looks_left == 0) bark();
    }
  }
  [[noreturn]] void bark() {
    std::fprintf(stderr,
                 "stress: nothing moved; WEFT_SEED=%llu started %lld begun %lld ended %lld\n",
                 static_cast<unsigned long long>(seed_), static_cast<long long>(books().started_),
                 static_cast<long long>(books().begun_), static_cast<long long>(books().ended_));
    std::atomic<int> printed{0};
    for (auto* loop : loops_) loop->lease().start(print_tree(printed));
    std::this_thread::sleep_for(std::chrono::seconds(3));
    std::fprintf(stderr, "(%d of %zu trees)\n", printed.load(), loops_.size());
    std::abort();
  }

  std::uint64_t seed_;
  std::int64_t live_before_;
  std::mutex mutex_;
  std::condition_variable bell_;
  bool over_ = false;
  std::vector<weft::testing::LoopThread*> loops_;
  std::thread dog_;
};

// Where threads exchange things they own: put one in, take out what another left there.
template <class T, std::size_t N = 16>
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() { clear(); }
  std::unique_ptr<T> swap(std::unique_ptr<T> in, Random& random) {
    auto& slot = slots_[random.below(N)];
    return std::unique_ptr<T>(slot.exchange(in.release(), std::memory_order_acq_rel));
  }
  void clear() {
    for (auto& slot : slots_) delete slot.exchange(nullptr, std::memory_order_acq_rel);
  }

 private:
  std::atomic<T*> slots_[N]{};
};

}  // namespace weft::test
