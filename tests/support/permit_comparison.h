// SPDX-License-Identifier: MIT
#pragma once
// What gives out permits, first come, first served, against a model that is a number and a queue: a Semaphore, and
// a SharedMutex, of which one who looks takes one and one who changes takes all. For rapidcheck.
//
// Thing has
//     static constexpr unsigned kPermits
//     using Permit                              empty when it is made; to bool; release()
//     static unsigned count_for(number)         what a request of that number wants, from 1 to kPermits
//     Task<Permit> acquire(count)
//     std::optional<Permit> try_acquire(count)
//     std::string differs_from(free)            what is not as it is when so many are free, or nothing
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace weft::test {

// What they are, without tasks: everything happens at once.
struct PermitModel {
  struct Request {
    std::size_t id;
    unsigned count;
  };
  unsigned free;
  std::deque<Request> queue = {};
  std::vector<std::size_t> served = {};

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
  void cancel(Request request) {
    const auto is_it = [&](const Request& each) { return each.id == request.id; };
    if (std::erase_if(queue, is_it) == 0) {
      std::erase(served, request.id);
      free += request.count;
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

template <class Thing>
class PermitComparison {
 public:
  // A step is its kind, a number for it, and for how many turns those who were served may go on
  // after it.
  using Step = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>;

  // Returns: what differed, or nothing.
  std::string differences(const std::vector<Step>& steps) {
    visitors_.reserve(steps.size());  // tasks refer to them
    weft::testing::VirtualLoop loop;
    auto root = [&]() -> Task<void> {
      Scope& scope = co_await current_scope();
      for (const auto& [kind, number, turns] : steps) {
        const int at_least = make(scope, kind, number);
        co_await yields(at_least + turns % 3);
        differences_ += thing_.differs_from(model_.free);
      }
      co_await yields(3);
      // In which order they go on is the loop's business.
      std::ranges::sort(went_on_);
      std::ranges::sort(model_.served);
      expect(went_on_ == model_.served, "those who went on are those who were served");
      for (Visitor& each : visitors_) each.task.cancel();
      co_await yields(3);
      visitors_.clear();
      expect(thing_.try_acquire(Thing::kPermits).has_value(), "everything came back");
    };
    run(loop, root());
    return differences_;
  }

 private:
  struct Visitor {
    unsigned count = 0;
    StartedTask<void> task;
    typename Thing::Permit permit;
    bool went_on = false;
    bool cancelled = false;
  };

  // Returns: for how many turns it is under way.
  int make(Scope& scope, unsigned kind, unsigned number) {
    switch (kind % 5) {
      case 0:
      case 1:
        return start(scope, Thing::count_for(number));
      case 2:
        return try_acquire(Thing::count_for(number));
      case 3:
        return visitors_.empty() ? 0 : cancel(number % visitors_.size());
      default:
        return went_on_.empty() ? 0 : release(visitors_[went_on_[number % went_on_.size()]]);
    }
  }
  int start(Scope& scope, unsigned count) {
    const std::size_t id = visitors_.size();
    visitors_.emplace_back().count = count;
    visitors_[id].task = visit(id).start(scope);
    model_.acquire({id, count});
    return 1;
  }
  Task<void> visit(std::size_t id) {
    visitors_[id].permit = co_await thing_.acquire(visitors_[id].count);
    visitors_[id].went_on = true;
    went_on_.push_back(id);
  }
  int try_acquire(unsigned count) {
    const auto permit = thing_.try_acquire(count);
    expect(permit.has_value() == model_.try_acquire(count), "who tries has it");
    if (permit) model_.release(count);
    return 0;
  }
  int cancel(std::size_t id) {
    Visitor& visitor = visitors_[id];
    if (visitor.went_on || std::exchange(visitor.cancelled, true)) return 0;
    visitor.task.cancel();
    model_.cancel({id, visitor.count});
    return 1;  // a kick comes before anything else
  }
  int release(Visitor& visitor) {
    if (!visitor.permit) return 0;
    visitor.permit.release();
    model_.release(visitor.count);
    return 0;
  }
  void expect(bool holds, const char* what) {
    if (!holds) differences_ += std::string(what) + "; ";
  }

  Thing thing_;
  PermitModel model_{Thing::kPermits};
  std::vector<Visitor> visitors_;
  std::vector<std::size_t> went_on_;
  std::string differences_;
};

}  // namespace weft::test
