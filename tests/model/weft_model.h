// SPDX-License-Identifier: MIT
#pragma once
// What the models share: how they are searched, and the posts by which their threads speak.
//
//     struct PublishMeetsAttach : rl::test_suite<PublishMeetsAttach, 2> { void thread(unsigned) … };
//     int main() {
//       weft_model::Report report("WaiterSlotModel");
//       report.check<PublishMeetsAttach>("PublishMeetsAttach", weft_model::every());
//       return report.result();
//     }
//
// A model says whether every interleaving is searched one by one, or those that differ only in the
// order of unrelated steps once (weft_model_search.h); a random search, which also sees older
// values, is added to both. Weakened runs are random only: WEFT_MODEL_RANDOM says how many rounds.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <ostream>
#include <utility>

#include "weft_model_atomic.h"
#include "weft_model_search.h"

namespace weft_model {

enum class Search { every, every_reduced, random };
inline constexpr Search every() { return Search::every; }
inline constexpr Search every_reduced() { return Search::every_reduced; }

inline constexpr unsigned kRandomRounds = 100'000;

struct Outcome {
  rl::test_result_e result;
  rl::iteration_t rounds;  // all, or up to the one that failed
};

// Runs one model. A round that failed is run once more, for its history.
template <class Test>
Outcome examine(Search search, unsigned rounds, std::ostream& history) {
  std::ostream quiet(nullptr);
  rl::test_params params;
  params.search_type = search == Search::random ? rl::sched_random : rl::sched_full;
  params.iteration_count = rounds;
  params.output_stream = &history;
  params.progress_stream = &quiet;
  if (search != Search::every_reduced) {
    rl::simulate<Test>(params);
    return {params.test_result, params.stop_iteration};
  }
  // As rl::simulate(), with a scheduler that it does not know.
  using Scheduler = ReducedSearch<Test::params::thread_count>;
  rl::ostringstream state, nowhere;
  if (rl::run_test<Test, Scheduler>(params, state, false) != rl::test_result_success) {
    params.initial_state = state.str();
    params.collect_history = true;
    rl::run_test<Test, Scheduler>(params, nowhere, true);
  }
  return {params.test_result, params.stop_iteration};
}

class Report {
 public:
  explicit Report(const char* model) : model_(model) {}

  template <class Test>
  void check(const char* name, Search search) {
    const char* rounds = std::getenv("WEFT_MODEL_RANDOM");
    std::printf("%s.%s: ", model_, name);
    std::fflush(stdout);
    if (!rounds) {
      rl::iteration_t seen = run<Test>(search, 0);
      if (seen == 0) return;
      if (search == Search::every) {
        std::printf("every interleaving, %llu; ", static_cast<unsigned long long>(seen));
      } else {
        std::printf("every interleaving but for the order of unrelated steps, %llu; ",
                    static_cast<unsigned long long>(seen - repetitions));
      }
    }
    unsigned count = rounds ? static_cast<unsigned>(std::atoi(rounds)) : kRandomRounds;
    if (run<Test>(Search::random, count) == 0) return;
    std::printf("random, %u: ok\n", count);
  }

  [[nodiscard]] int result() const {
    if (Sites::all().weakens() && !Sites::all().weakened()) std::printf("weakened nothing\n");
    return failed_ ? 1 : 0;
  }

 private:
  // Returns: how many were examined, or 0 and a word about it if one failed.
  template <class Test>
  rl::iteration_t run(Search search, unsigned rounds) {
    // Relacy's own allocator: what it prints while it runs must not count as the model's memory.
    rl::ostringstream history;
    Outcome outcome = examine<Test>(search, rounds, history);
    if (outcome.result == rl::test_result_success) return outcome.rounds;
    failed_ = true;
    std::printf("FAILED, %s\n", rl::test_result_str(outcome.result));
    if (!Sites::all().weakens()) std::printf("%s\n", history.str().c_str());
    return 0;
  }

  const char* model_;
  bool failed_ = false;
};

// What a thread does next, it does some time later: others come between, also where it has no step
// of its own. So a cancel is not always there at the moment in which the wait began.
inline void some_time_later() { Turn turn(Step::anything, nullptr); }

// Posts, first in, first out, and a place to sleep for them: a loop's inbox as the other models see
// it. What happens before a post is visible after the take, and nothing else is ordered by it.
class Mailbox {
 public:
  void post(int what = 0) {
    Turn turn(Step::writes, this);
    RL_ASSERT(last_ - first_ < kPostsMax);
    what_[last_++ % kPostsMax] = what;
    filled_ = true;
    posts_.fetch_add(1, rl::mo_release, $);
    posts_.wake(rl::ctx(), 1, $);
  }
  bool try_take() {
    Turn turn(Step::writes, this);
    return take_now();
  }
  // Returns: what was posted.
  int take() {
    {
      Turn turn({Step::writes, this, &filled_});
    }
    while (!take_now()) posts_.wait(rl::ctx(), false, false, $);
    return taken_;
  }
  [[nodiscard]] bool empty() const { return first_ == last_; }

 private:
  static constexpr unsigned kPostsMax = 8;

  bool take_now() {
    rl::preemption_disabler hold(rl::ctx());
    if (empty()) return false;
    posts_.fetch_sub(1, rl::mo_acquire, $);
    taken_ = what_[first_++ % kPostsMax];
    filled_ = !empty();
    return true;
  }

  rl::atomic<unsigned> posts_{0};
  int what_[kPostsMax];
  int taken_ = 0;
  unsigned first_ = 0, last_ = 0;
  bool filled_ = false;
};

// Bytes of a plain object: reading or writing them unordered with another's write is a data race.
class Plain {
 public:
  Plain() : value_(0) {}
  void write(int value = 1, std::source_location where = std::source_location::current()) {
    value_(info_of(where)) = value;
  }
  int read(std::source_location where = std::source_location::current()) const {
    return value_(info_of(where)).load();
  }

 private:
  rl::var<int> value_;
};

// A place on the heap that is allocated once and freed once. It is never used again within a round,
// so that whoever touches it too late is seen.
template <class T>
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  template <class... Args>
  void make(Args&&... args) {
    ::new (bytes_) T(std::forward<Args>(args)...);
  }
  void free() {
    RL_ASSERT(!freed_);
    freed_ = true;
    object().~T();
    // Relacy knows its objects by a mark in them; the compiler may leave out a destructor's stores.
    std::memset(bytes_, 0xdd, sizeof(T));
    asm volatile("" : : "r"(bytes_) : "memory");
  }
  [[nodiscard]] bool freed() const { return freed_; }
  T* operator->() { return &object(); }

 private:
  T& object() { return *std::launder(reinterpret_cast<T*>(bytes_)); }

  alignas(T) unsigned char bytes_[sizeof(T)];
  bool freed_ = false;
};

}  // namespace weft_model
