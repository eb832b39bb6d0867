// SPDX-License-Identifier: MIT
#pragma once
// What tests of tasks share: a fixture that is typed on the loop, and things that say when they
// live and die.
//
//     template <class L> struct TaskTest : weft::test::LoopTest<L> {};
//     TYPED_TEST_SUITE(TaskTest, weft::test::LoopTypes);
//     TYPED_TEST(TaskTest, ReturnsItsValue) { EXPECT_EQ(run_on(this->loop, answer()), 42); }
//
// A later loop joins every typed suite by one more name in LoopTypes.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/runtime_loop.h"
#include "weft/base/log.h"
#include "weft/testing/thread_loop.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace weft::test {

using LoopTypes =
    ::testing::Types<weft::testing::VirtualLoop, weft::testing::ThreadLoop, RuntimeLoop>;

template <class L>
class LoopTest : public ::testing::Test {
 protected:
  ~LoopTest() override { EXPECT_EQ(loop.strand_count(), 0u) << "a task outlived its test"; }

  L loop;
};

template <class L, class A>
decltype(auto) run_on(L& loop, A&& awaitable) {
  if constexpr (std::is_same_v<L, RuntimeLoop>) {
    return loop.run(std::forward<A>(awaitable));
  } else {
    return weft::run(loop, std::forward<A>(awaitable));
  }
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// What happened, in order.
using Events = std::vector<std::string>;

// Notes its own end: a local whose destruction order is looked at.
class Marker {
 public:
  Marker(Events& events, std::string name) : events_(&events), name_(std::move(name)) {}
  Marker(Marker&& other) noexcept
      : events_(std::exchange(other.events_, nullptr)), name_(std::move(other.name_)) {}
  Marker& operator=(Marker&&) = delete;
  ~Marker() {
    if (events_) events_->push_back("~" + name_);
  }

 private:
  Events* events_;
  std::string name_;
};

// How many of its kind live. Copies and moves count.
class Counted {
 public:
  explicit Counted(int value = 0) : value_(value) { ++live; }
  Counted(const Counted& other) : value_(other.value_) { ++live; }
  Counted(Counted&& other) noexcept : value_(std::exchange(other.value_, -1)) { ++live; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --live; }
  [[nodiscard]] int value() const { return value_; }

  static inline int live = 0;

 private:
  int value_;
};

// Calls a function when it dies.
class OnExit {
 public:
  explicit OnExit(std::function<void()> fn) : fn_(std::move(fn)) {}
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;
  ~OnExit() { fn_(); }

 private:
  std::function<void()> fn_;
};

// Catches what weft logs while it lives. One at a time.
class LogCapture {
 public:
  LogCapture() : before_(set_log_sink(&sink)) { lines().clear(); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() { set_log_sink(before_); }

  [[nodiscard]] std::vector<std::string> take() {
    std::lock_guard lock(mutex());
    return std::exchange(lines(), {});
  }

 private:
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  static void sink(LogLevel, std::string_view message) noexcept {
    std::lock_guard lock(mutex());
    lines().emplace_back(message);
  }

  LogSink before_;
};

// The smallest tasks.
inline Task<void> parked() { co_await suspend_forever(); }
inline Task<void> yields(int times) {
  for (int i = 0; i < times; ++i) co_await yield();
}
inline Task<void> parked_with(Events& events, std::string name) {
  Marker marker(events, name);
  co_await suspend_forever();
}
inline Task<void> throws_after(int times, std::string what) {
  for (int i = 0; i < times; ++i) co_await yield();
  throw std::runtime_error(what);
}
template <class T>
Task<T> returns(T value) {
  co_return value;
}

}  // namespace weft::test
