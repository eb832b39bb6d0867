// SPDX-License-Identifier: MIT
// The floors of suite runtime: what two threads on two cores can do without any runtime.
//
// pingpong_busy       two spinning threads exchange an atomic: a cache line's way there and back.
// pingpong_sleeping   two threads in epoll_wait wake one another through an eventfd each, and read it:
//                     the least that two sleeping event loops do.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>

#include "harness/contestant.h"
#include "harness/threads.h"

namespace weft::bench {
namespace {

constexpr std::size_t kWarmUpRounds = 1000;

// Each side has a line of its own to write.
struct Ball {
  alignas(128) std::atomic<std::size_t> there = 0;
  alignas(128) std::atomic<std::size_t> back = 0;
};

std::string pingpong_busy(std::size_t n) {
  const Cores cores = two_cores();
  const std::size_t rounds = kWarmUpRounds + n;
  Ball ball;
  std::thread other([&] {
    pin_this_thread(cores.last);
    for (std::size_t round = 1; round <= rounds; ++round) {
      while (ball.there.load(std::memory_order_acquire) != round) {
      }
      ball.back.store(round, std::memory_order_release);
    }
  });
  std::string answer;
  std::thread one([&] {
    pin_this_thread(cores.first);
    Stopwatch watch;
    for (std::size_t round = 1; round <= rounds; ++round) {
      if (round == kWarmUpRounds + 1) watch.restart();
      ball.there.store(round, std::memory_order_release);
      while (ball.back.load(std::memory_order_acquire) != round) {
      }
    }
    answer = watch.per_operation(n);
  });
  one.join();
  other.join();
  return answer;
}

// What an event loop sleeps on.
class Bell {
 public:
  Bell() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    if (event_ < 0 || epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &interest) != 0)
      throw std::system_error(errno, std::generic_category(), "eventfd in epoll");
  }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell() {
    close(epoll_);
    close(event_);
  }

  void ring() {
    const std::uint64_t one = 1;
    if (write(event_, &one, sizeof one) != sizeof one) std::abort();
  }
  void wait() {
    epoll_event event{};
    while (epoll_wait(epoll_, &event, 1, -1) != 1) {
    }
    std::uint64_t count = 0;
    if (read(event_, &count, sizeof count) != sizeof count) std::abort();
  }

 private:
  int event_;
  int epoll_;
};

std::string pingpong_sleeping(std::size_t n) {
  const Cores cores = two_cores();
  Bell there;
  Bell back;
  std::thread other([&] {
    pin_this_thread(cores.last);
    for (std::size_t round = 0; round < kWarmUpRounds + n; ++round) {
      there.wait();
      back.ring();
    }
  });
  std::string answer;
  std::thread one([&] {
    pin_this_thread(cores.first);
    Stopwatch watch;
    for (std::size_t round = 0; round < kWarmUpRounds + n; ++round) {
      if (round == kWarmUpRounds) watch.restart();
      there.ring();
      back.wait();
    }
    answer = watch.per_operation(n);
  });
  one.join();
  other.join();
  return answer;
}

constexpr Measure kMeasures[] = {
    {"pingpong_busy", pingpong_busy},
    {"pingpong_sleeping", pingpong_sleeping},
};

}  // namespace
}  // namespace weft::bench

int main() {
  (void)weft::bench::allowed_cores();
  return weft::bench::serve(
      "two threads: an atomic each, or an eventfd each; clang " __clang_version__,
      weft::bench::kMeasures);
}
