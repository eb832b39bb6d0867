// SPDX-License-Identifier: MIT
// SharedMutex against a model that is two numbers and a queue. A failure prints what to put into
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

// What a SharedMutex is, without tasks: everything happens at once.
struct Naive {
  struct Request {
    std::size_t id;
    bool shared;
  };
  unsigned sharing = 0;
  bool alone = false;
  std::deque<Request> queue;
  std::vector<std::size_t> admitted;

  [[nodiscard]] bool admits(bool shared) const { return !alone && (shared || sharing == 0); }
  void enter(bool shared) {
    sharing += shared;
    alone = !shared;
  }
  void lock(Request request) {
    queue.push_back(request);
    admit();
  }
  bool try_lock(bool shared) {
    if (!queue.empty() || !admits(shared)) return false;
    enter(shared);
    return true;
  }
  void unlock(bool shared) {
    sharing -= shared;
    alone = false;
    admit();
  }
  // It waits, or was let in and does not know yet.
  void cancel(Request request) {
    const auto is_it = [&](const Request& each) { return each.id == request.id; };
    if (std::erase_if(queue, is_it) > 0) return admit();
    std::erase(admitted, request.id);
    unlock(request.shared);
  }
  void admit() {
    while (!queue.empty() && admits(queue.front().shared)) {
      enter(queue.front().shared);
      admitted.push_back(queue.front().id);
      queue.pop_front();
    }
  }
};

class Comparison {
 public:
  // A step is its kind, a number for it, and for how many turns those who were let in may go on
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
      std::ranges::sort(naive_.admitted);
      expect(went_on_ == naive_.admitted, "those who went on are those who were let in");
      for (Visitor& each : visitors_) each.task.cancel();
      co_await yields(3);
      visitors_.clear();
      expect(mutex_.try_lock().has_value(), "all have left");
    };
    run(loop, root());
    return differences_;
  }

 private:
  struct Visitor {
    bool shared = false;
    StartedTask<void> task;
    SharedMutexGuard alone;
    SharedMutexSharedGuard beside;
    bool went_on = false;
    bool cancelled = false;
  };

  // Returns: for how many turns it is under way.
  int make(Scope& scope, unsigned kind, unsigned number) {
    switch (kind % 5) {
      case 0:
      case 1:
        return start(scope, number % 3 != 0);
      case 2:
        return try_lock(number % 2 == 0);
      case 3:
        return visitors_.empty() ? 0 : cancel(number % visitors_.size());
      default:
        return went_on_.empty() ? 0 : unlock(visitors_[went_on_[number % went_on_.size()]]);
    }
  }
  int start(Scope& scope, bool shared) {
    const std::size_t id = visitors_.size();
    visitors_.emplace_back().shared = shared;
    visitors_[id].task = visit(id).start(scope);
    naive_.lock({id, shared});
    return 1;
  }
  Task<void> visit(std::size_t id) {
    Visitor& visitor = visitors_[id];
    if (visitor.shared) {
      visitor.beside = co_await mutex_.lock_shared();
    } else {
      visitor.alone = co_await mutex_.lock();
    }
    visitor.went_on = true;
    went_on_.push_back(id);
  }
  int try_lock(bool shared) {
    std::optional<SharedMutexGuard> alone;
    std::optional<SharedMutexSharedGuard> beside;
    if (shared) {
      beside = mutex_.try_lock_shared();
    } else {
      alone = mutex_.try_lock();
    }
    const bool locked = beside.has_value() || alone.has_value();
    expect(locked == naive_.try_lock(shared), "try_lock");
    if (locked) naive_.unlock(shared);
    return 0;
  }
  int cancel(std::size_t id) {
    Visitor& visitor = visitors_[id];
    if (visitor.went_on || std::exchange(visitor.cancelled, true)) return 0;
    visitor.task.cancel();
    naive_.cancel({id, visitor.shared});
    return 1;  // a kick comes before anything else
  }
  int unlock(Visitor& visitor) {
    if (!visitor.alone && !visitor.beside) return 0;
    visitor.alone.unlock();
    visitor.beside.unlock();
    naive_.unlock(visitor.shared);
    return 0;
  }

  void compare() {
    expect(mutex_.is_locked() == naive_.alone, "somebody has it alone");
    expect(mutex_.shared_count() == naive_.sharing, "so many share it");
  }
  void expect(bool holds, const char* what) {
    if (!holds) differences_ += std::string(what) + "; ";
  }

  SharedMutex mutex_;
  Naive naive_;
  std::vector<Visitor> visitors_;
  std::vector<std::size_t> went_on_;
  std::string differences_;
};

TEST(SharedMutexProperty, DoesWhatTwoNumbersAndAQueueDo) {
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
