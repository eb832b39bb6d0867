// SPDX-License-Identifier: MIT
// Semaphore against a model that is a number and a queue. A failure prints what to put into
// RC_PARAMS to see it again, and the shortest sequence of steps that fails.
#if __has_include(<rapidcheck.h>)
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::VirtualLoop;

constexpr unsigned kPermits = 5;

// What a Semaphore is, without tasks: everything happens at once.
struct Naive {
  struct Request {
    std::size_t id;
    unsigned count;
  };
  unsigned free = kPermits;
  std::deque<Request> queue;
  std::vector<std::size_t> served;

  void acquire(Request request) {
    queue.push_back(request);
    serve();
  }
  bool try_acquire(unsigned count) {
    if (!queue.empty() || count > free) return false;
    free -= count;
    return true;
  }
  void release(unsigned count) {
    free += count;
    serve();
  }
  // It waits, or was served and does not know yet.
  void cancel(std::size_t id, unsigned count) {
    if (std::erase_if(queue, [&](const Request& each) { return each.id == id; }) == 0) {
      std::erase(served, id);
      free += count;
    }
    serve();
  }
  void serve() {
    while (!queue.empty() && queue.front().count <= free) {
      free -= queue.front().count;
      served.push_back(queue.front().id);
      queue.pop_front();
    }
  }
};

class Comparison {
 public:
  // A step is its kind, a number for it, and for how many turns those who were served may go on
  // after it.
  using Step = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>;

  // Returns: what differed, or nothing.
  std::string differences(const std::vector<Step>& steps) {
    visitors_.reserve(steps.size());  // tasks refer to them
    VirtualLoop loop;
    auto root = [&]() -> Task<void> {
      Scope& scope = co_await current_scope();
      for (const auto& [kind, number, turns] : steps) {
        const int at_least = make(scope, kind, number);
        co_await yields(at_least + turns % 3);
        compare();
      }
      co_await yields(3);
      // In which order they go on is the loop's business.
      std::ranges::sort(went_on_);
      std::ranges::sort(naive_.served);
      expect(went_on_ == naive_.served, "those who went on are those who were served");
      for (Visitor& each : visitors_) each.task.cancel();
      co_await yields(3);
      visitors_.clear();
    };
    run(loop, root());
    expect(semaphore_.available() == kPermits, "everything came back");
    return differences_;
  }

 private:
  struct Visitor {
    unsigned count = 0;
    StartedTask<void> task;
    SemaphorePermit permit;
    bool went_on = false;
    bool cancelled = false;
  };

  // Returns: for how many turns it is under way.
  int make(Scope& scope, unsigned kind, unsigned number) {
    switch (kind % 4) {
      case 0:
        return start(scope, 1 + number % kPermits);
      case 1:
        return try_acquire(1 + number % kPermits);
      case 2:
        return visitors_.empty() ? 0 : cancel(number % visitors_.size());
      default:
        return went_on_.empty() ? 0 : release(visitors_[went_on_[number % went_on_.size()]]);
    }
  }
  int start(Scope& scope, unsigned count) {
    const std::size_t id = visitors_.size();
    visitors_.emplace_back().count = count;
    visitors_[id].task = visit(id).start(scope);
    naive_.acquire({id, count});
    return 1;
  }
  Task<void> visit(std::size_t id) {
    visitors_[id].permit = co_await semaphore_.acquire(visitors_[id].count);
    visitors_[id].went_on = true;
    went_on_.push_back(id);
  }
  int try_acquire(unsigned count) {
    std::optional<SemaphorePermit> permit = semaphore_.try_acquire(count);
    expect(permit.has_value() == naive_.try_acquire(count), "try_acquire()");
    if (permit) naive_.release(count);
    return 0;
  }
  int cancel(std::size_t id) {
    Visitor& visitor = visitors_[id];
    if (visitor.went_on || std::exchange(visitor.cancelled, true)) return 0;
    visitor.task.cancel();
    naive_.cancel(id, visitor.count);
    return 1;  // a kick comes before anything else
  }
  int release(Visitor& visitor) {
    if (!visitor.permit) return 0;
    visitor.permit.release();
    naive_.release(visitor.count);
    return 0;
  }

  void compare() { expect(semaphore_.available() == naive_.free, "so many are free"); }
  void expect(bool holds, const char* what) {
    if (!holds) differences_ += std::string(what) + "; ";
  }

  Semaphore semaphore_{kPermits};
  Naive naive_;
  std::vector<Visitor> visitors_;
  std::vector<std::size_t> went_on_;
  std::string differences_;
};

TEST(SemaphoreProperty, DoesWhatANumberAndAQueueDo) {
  auto property = [](const std::vector<Comparison::Step>& steps) {
    Comparison comparison;
    const std::string differences = comparison.differences(steps);
    RC_CLASSIFY(steps.size() > 10, "more than ten steps");
    if (!differences.empty()) RC_FAIL(differences);
  };
  EXPECT_TRUE(rc::check(property));
}

}  // namespace
#endif
