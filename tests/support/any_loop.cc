// SPDX-License-Identifier: MIT
#include "support/any_loop.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft::test {

namespace {

Driver driver_named(std::string_view name) {
  for (Driver each : {Driver::automatic, Driver::io_uring, Driver::epoll, Driver::poll}) {
    if (to_string(each) == name) return each;
  }
  throw std::invalid_argument("WEFT_TEST_LOOP names no driver");
}

}  // namespace

const char* to_string(LoopKind kind) {
  switch (kind) {
    case LoopKind::virtual_time:
      return "Virtual";
    case LoopKind::thread:
      return "Thread";
    case LoopKind::runtime:
      return "Runtime";
  }
  return "?";
}

AnyLoop::AnyLoop(LoopKind kind) : kind_(kind) {
  switch (kind) {
    case LoopKind::virtual_time:
      loop_ = std::make_shared<weft::testing::VirtualLoop>();
      break;
    case LoopKind::thread:
      loop_ = std::make_shared<weft::testing::ThreadLoop>();
      break;
    case LoopKind::runtime:
      make_runtime();
      break;
  }
}

void AnyLoop::make_runtime() {
  const char* given = std::getenv("WEFT_TEST_LOOP");
  std::string_view which = given ? given : "loop:automatic";
  std::size_t colon = which.find(':');
  Driver driver = driver_named(which.substr(colon + 1));
  if (which.substr(0, colon) == "loop") {
    loop_ = std::make_shared<EventLoop>(EventLoopOptions{.driver = driver});
  } else {
    unsigned workers = static_cast<unsigned>(std::stoul(std::string(which.substr(0, colon))));
    context_ = std::make_shared<IOContext>(IOContextOptions{.workers = workers, .driver = driver});
    loop_ = std::shared_ptr<Loop>(context_, &context_->loop(0));
  }
}

std::size_t AnyLoop::strand_count() {
  std::size_t all = loop_->strand_count();
  for (std::size_t i = 1; context_ && i < context_->workers(); ++i) {
    all += context_->loop(i).strand_count();
  }
  return all;
}

}  // namespace weft::test
