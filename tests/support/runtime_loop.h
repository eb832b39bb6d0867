// SPDX-License-Identifier: MIT
#pragma once
// A loop of the runtime as the typed tests see it: which one, the environment says, so that the tests
// are compiled once and run on all of them (tests/CMakeLists.txt).
//
//     WEFT_TEST_LOOP=loop:epoll          an EventLoop
//     WEFT_TEST_LOOP=4:io_uring          an IOContext with four workers; its loop 0 is "the loop"
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "weft/run/io_context.h"

namespace weft::test {

class RuntimeLoop {
 public:
  RuntimeLoop() {
    const char* given = std::getenv("WEFT_TEST_LOOP");
    std::string_view kind = given ? given : "loop:automatic";
    std::size_t colon = kind.find(':');
    Driver driver = driver_named(kind.substr(colon + 1));
    if (kind.substr(0, colon) == "loop") {
      loop_ = std::make_unique<EventLoop>(EventLoopOptions{.driver = driver});
    } else {
      unsigned workers = static_cast<unsigned>(std::stoul(std::string(kind.substr(0, colon))));
      context_ =
          std::make_unique<IOContext>(IOContextOptions{.workers = workers, .driver = driver});
    }
  }

  template <class A>
  decltype(auto) run(A&& awaitable) {
    if (context_) return context_->run(std::forward<A>(awaitable));
    return weft::run(*loop_, std::forward<A>(awaitable));
  }
  [[nodiscard]] EventLoop& loop() { return context_ ? context_->loop(0) : *loop_; }
  operator Loop&() { return loop(); }

  [[nodiscard]] std::size_t strand_count() {
    std::size_t all = loop().strand_count();
    for (std::size_t i = 1; context_ && i < context_->workers(); ++i) {
      all += context_->loop(i).strand_count();
    }
    return all;
  }
  bool post(Runnable& work) { return loop().post(work); }
  [[nodiscard]] std::int64_t now_ns() { return loop().now_ns(); }
  void arm_timer(detail::TimerNode& timer, std::int64_t deadline_ns) {
    loop().arm_timer(timer, deadline_ns);
  }
  template <class Fn>
  void capture(Fn&& fn) {
    loop().capture(std::forward<Fn>(fn));
  }

 private:
  static Driver driver_named(std::string_view name) {
    for (Driver each : {Driver::automatic, Driver::io_uring, Driver::epoll, Driver::poll}) {
      if (to_string(each) == name) return each;
    }
    throw std::invalid_argument("WEFT_TEST_LOOP names no driver");
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<IOContext> context_;
};

}  // namespace weft::test
