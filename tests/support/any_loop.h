// SPDX-License-Identifier: MIT
#pragma once
// A loop of whatever kind, chosen when the test runs: a test that should pass on all of them is
// compiled once. Each is driven as its users drive it: run_on() calls weft::run(), or IOContext's.
//
// Which loop of the runtime is meant the environment says, so that the same program runs on all of
// them (tests/CMakeLists.txt).
//
//     WEFT_TEST_LOOP=loop:epoll          an EventLoop
//     WEFT_TEST_LOOP=4:io_uring          an IOContext with four workers; its loop 0 is "the loop"
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weft/run/io_context.h"
#include "weft/testing/thread_loop.h"
#include "weft/testing/virtual_loop.h"

namespace weft::test {

enum class LoopKind : std::uint8_t { virtual_time, thread, runtime };
inline constexpr std::array kLoopKinds{LoopKind::virtual_time, LoopKind::thread, LoopKind::runtime};

// As the names of tests say it.
[[nodiscard]] const char* to_string(LoopKind kind);

class AnyLoop {
 public:
  explicit AnyLoop(LoopKind kind);
  AnyLoop(const AnyLoop&) = delete;
  AnyLoop& operator=(const AnyLoop&) = delete;

  [[nodiscard]] LoopKind kind() const { return kind_; }
  [[nodiscard]] Loop& loop() { return *loop_; }
  operator Loop&() { return *loop_; }
  // What it is a worker of, or null.
  [[nodiscard]] IOContext* context() { return context_.get(); }

  // On all workers.
  [[nodiscard]] std::size_t strand_count();

 private:
  void make_runtime();

  LoopKind kind_;
  std::shared_ptr<IOContext> context_;
  std::shared_ptr<Loop> loop_;
};

template <class T>
T run_on(AnyLoop& loop, Task<T> task) {
  if (IOContext* context = loop.context()) return context->run(std::move(task));
  return weft::run(loop.loop(), std::move(task));
}
template <class A>
  requires Awaitable<A>
AwaitResult<A> run_on(AnyLoop& loop, A&& awaitable) {
  if (IOContext* context = loop.context()) return context->run(std::forward<A>(awaitable));
  return weft::run(loop.loop(), std::forward<A>(awaitable));
}
// One of a certain kind.
template <class L, class A>
decltype(auto) run_on(L& loop, A&& awaitable) {
  return weft::run(loop, std::forward<A>(awaitable));
}

}  // namespace weft::test
