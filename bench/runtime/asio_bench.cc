// SPDX-License-Identifier: MIT
// Boost.Asio in suite runtime: io_contexts with one thread each, and callbacks, which cost less than
// awaitables here.
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/version.hpp>
#include <string>
#include <thread>
#include <vector>

#include "harness/contestant.h"
#include "harness/threads.h"
#include "runtime/timers.h"

namespace weft::bench {
namespace {

namespace asio = boost::asio;

constexpr int kOneThread = 1;
constexpr std::size_t kWarmUpRounds = 1000;

// A handler that posts itself to the other side and back.
class PingPong {
 public:
  explicit PingPong(std::size_t rounds) : rounds_(rounds) {}

  std::string run_asleep() {
    return run([](asio::io_context& context) { context.run(); });
  }
  // As a thread that has other work between two looks.
  std::string run_busy() {
    return run([this](asio::io_context& context) {
      while (!over_.load(std::memory_order_relaxed)) context.poll();
    });
  }

 private:
  template <class Drive>
  std::string run(Drive drive) {
    const Cores cores = two_cores();
    auto near_work = asio::make_work_guard(near_);
    auto far_work = asio::make_work_guard(far_);
    std::thread near_thread([&] {
      pin_this_thread(cores.first);
      drive(near_);
    });
    std::thread far_thread([&] {
      pin_this_thread(cores.last);
      drive(far_);
    });
    asio::post(near_, [this] { ping(); });
    near_thread.join();
    far_thread.join();
    return answer_;
  }

  void ping() {
    if (round_ == kWarmUpRounds) watch_.restart();
    if (round_++ < kWarmUpRounds + rounds_) {
      asio::post(far_, [this] { asio::post(near_, [this] { ping(); }); });
      return;
    }
    answer_ = watch_.per_operation(rounds_);
    over_.store(true, std::memory_order_relaxed);
    near_.stop();
    far_.stop();
  }

  asio::io_context near_{kOneThread};
  asio::io_context far_{kOneThread};
  const std::size_t rounds_;
  std::size_t round_ = 0;
  std::atomic<bool> over_ = false;
  Stopwatch watch_;
  std::string answer_;
};

std::string pingpong_busy(std::size_t n) { return PingPong(n).run_busy(); }
std::string pingpong_sleeping(std::size_t n) { return PingPong(n).run_asleep(); }

// Arm and cancel, with the io_context's own executor, not a type-erased one. A cancelled wait
// completes through the loop: its handler starts the next pair, so that the operation's memory is
// recycled, as Asio means it to be.
class ArmCancel {
 public:
  ArmCancel(asio::io_context& context, std::size_t pairs) : timer_(context), pairs_(pairs) {}

  void start() {
    watch_.restart();
    next();
  }
  [[nodiscard]] const std::string& answer() const { return answer_; }

 private:
  void next() {
    if (pair_ == pairs_) {
      answer_ = watch_.per_operation(pairs_);
      timer_.get_executor().context().stop();
      return;
    }
    timer_.expires_after(kFar + spread(pair_++, kFarSpread));
    timer_.async_wait([this](const boost::system::error_code&) { next(); });
    timer_.cancel();
  }

  asio::basic_waitable_timer<std::chrono::steady_clock,
                             asio::wait_traits<std::chrono::steady_clock>,
                             asio::io_context::executor_type>
      timer_;
  const std::size_t pairs_;
  std::size_t pair_ = 0;
  Stopwatch watch_;
  std::string answer_;
};

std::string timer_arm_cancel(std::size_t n) {
  asio::io_context context(kOneThread);
  std::vector<asio::steady_timer> outstanding;
  outstanding.reserve(kOutstanding);
  ArmCancel measure(context, n);
  asio::post(context, [&] {
    for (std::size_t i = 0; i < kOutstanding; ++i) {
      outstanding.emplace_back(context, kFar + spread(i, kFarSpread));
      outstanding.back().async_wait([](const boost::system::error_code&) {});
    }
    measure.start();
  });
  context.run();
  return measure.answer();
}

constexpr Measure kMeasures[] = {
    {"pingpong_busy", pingpong_busy},
    {"pingpong_sleeping", pingpong_sleeping},
    {"timer_arm_cancel", timer_arm_cancel},
};

}  // namespace
}  // namespace weft::bench

int main() {
  (void)weft::bench::allowed_cores();
  return weft::bench::serve("Boost.Asio callbacks, Boost " BOOST_LIB_VERSION
                            ", io_context(1) per thread; clang " __clang_version__,
                            weft::bench::kMeasures);
}
