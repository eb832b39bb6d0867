// SPDX-License-Identifier: MIT
#pragma once
// What tests of tasks share: fixtures with a loop, and things that say when they live and die.
//
//     struct TaskTest : weft::test::EachLoopTest {};
//     LOOP_TEST(TaskTest, ReturnsItsValue) { EXPECT_EQ(run_on(loop, answer()), 42); }
//
// runs on every loop, as TaskTest.ReturnsItsValue/Virtual, /Thread and /Runtime, and is compiled once.
// A later loop joins every such suite by one more LoopKind.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/any_loop.h"
#include "weft/base/log.h"
#include "weft/weft.h"

namespace weft::test {

// On a loop of one kind.
template <class L>
class LoopTest : public ::testing::Test {
 protected:
  ~LoopTest() override { EXPECT_EQ(loop.strand_count(), 0u) << "a task outlived its test"; }

  L loop;
};

// On each: see LOOP_TEST. A suite that is typed besides: typed_loop_test.h.
class EachLoopTest : public ::testing::Test {
 public:
  // A suite that is not for all of them says so by a kLoops of its own.
  static constexpr std::array kLoops = kLoopKinds;

  using Make = ::testing::Test* (*)();
  // Makes a test of gtest's on each of the loops. Returns: true.
  static bool add(const char* suite, const char* name, std::span<const LoopKind> loops,
                  const char* file, int line, Make make);

 protected:
  EachLoopTest() : loop(kind_) {}
  ~EachLoopTest() override;

  AnyLoop loop;

 private:
  static LoopKind kind_;  // of the test that is being made
};

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

// Instead of TEST_P, whose factories, one class per test and more per suite, are a fifth of what a
// test costs to compile.
#define LOOP_TEST(Suite, Name)                                                                  \
  struct Suite##_##Name : Suite {                                                               \
    void TestBody() override;                                                                   \
  };                                                                                            \
  [[maybe_unused]] const bool Suite##_##Name##_added =                                          \
      ::weft::test::EachLoopTest::add(#Suite, #Name, Suite::kLoops, __FILE__, __LINE__,         \
                                      []() -> ::testing::Test* { return new Suite##_##Name; }); \
  void Suite##_##Name::TestBody()
