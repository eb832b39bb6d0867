// SPDX-License-Identifier: MIT
#pragma once
// ReducedSearch: every interleaving, but of those that differ only in the order of neighbouring
// steps that do not concern each other, one.
//
// Relacy's full search runs through every order of every two steps, also where one thread touches
// one atomic and the other another: both orders lead to the same state, and three threads have too
// many of them. This search leaves such repetitions out by sleep sets (P. Godefroid,
// "Partial-Order Methods for the Verification of Concurrent Systems", 1996, chapter 5), on Relacy's
// own search tree: at a point of choice, once the ways that begin with a step of thread A are done,
// A sleeps on the other ways until some thread makes a step that concerns A's.
//
// A step is one operation on an atomic of the seam or on a Mailbox, with the code that follows it
// up to the next; the start of a thread is a step that concerns nobody. Two steps concern each
// other if they touch the same object and one of them writes. Values are not reduced: which of two values
// a load sees is a branch here as it is there.
//
// A step that would have to wait, for a mutex or for a post, is not made before it need not: to have
// begun to wait is nothing that anybody sees. And the unlock of a mutex is made at once: it moves to the
// left of whatever another does meanwhile, for that cannot be a lock of this mutex (R. Lipton,
// "Reduction", 1975). A thread never sleeps on a lock while another holds it, because that one's lock
// concerned it and has woken it; so an unlock has nobody to wake.
//
// Requires of a model: what its threads share outside of atomics and mailboxes is Plain, where a
// race is an error in either order, or looked at in after(), or ordered by the steps themselves.
// search_test.cc holds this search against the full one.
#include <cstdint>

#include "weft_model_atomic.h"

namespace weft_model {

// How many rounds of the last search were given up as repetitions.
inline rl::iteration_t repetitions = 0;

template <rl::thread_id_t kThreads>
class ReducedSearch
    : public rl::tree_search_scheduler<ReducedSearch<kThreads>,
                                       rl::tree_search_scheduler_thread_info<kThreads>, kThreads> {
  using Base = rl::tree_search_scheduler<ReducedSearch,
                                         rl::tree_search_scheduler_thread_info<kThreads>, kThreads>;
  using Threads = std::uint32_t;  // a set of them

 public:
  ReducedSearch(rl::test_params& params, typename Base::shared_context_t& shared,
                rl::thread_id_t dynamic_threads)
      : Base(params, shared, dynamic_threads) {
    repetitions = 0;
  }

  rl::thread_id_t iteration_begin_impl() {
    this->stree_depth_ = 0;
    asleep_ = 0;
    repeats_ = false;
    for (Step& step : next_) step = {.kind = Step::nobodys};
    return this->running_threads[0];
  }

  rl::thread_id_t schedule_impl(rl::unpark_reason& reason, unsigned /*yield*/) {
    reason = rl::unpark_reason_normal;
    // One that was parked in its step will make that step when it wakes.
    if (this->thread_->state_ == rl::thread_state_running) next_[this->thread_->index_] = next_step;
    if (repeats_) return this->running_threads[0];

    rl::thread_id_t ways[kThreads];
    unsigned count = 0;
    for (rl::thread_id_t i = 0; i != this->running_threads_count; ++i) {
      rl::thread_id_t thread = this->running_threads[i];
      if (next_[thread].kind == Step::nobodys) return thread;
      if (!(asleep_ & set_of(thread)) && is_possible(next_[thread])) ways[count++] = thread;
    }
    if (count == 0) {
      // Every way on was gone from an earlier point. Ends like any other round, without branches.
      repeats_ = true;
      ++repetitions;
      return this->running_threads[0];
    }
    unsigned choice = count == 1 ? 0 : this->rand(count, rl::sched_type_sched);
    rl::thread_id_t chosen = ways[choice];
    for (unsigned i = 0; i != choice; ++i) asleep_ |= set_of(ways[i]);
    for (rl::thread_id_t thread = 0; thread != kThreads; ++thread) {
      if (concern_each_other(next_[thread], next_[chosen])) asleep_ &= ~set_of(thread);
    }
    return chosen;
  }

  unsigned rand_impl(unsigned limit, rl::sched_type type) {
    return repeats_ ? 0 : Base::rand_impl(limit, type);
  }
  double iteration_count_approx() { return 1; }  // for a progress bar that nobody sees

 private:
  static bool is_possible(const Step& step) { return !step.possible || *step.possible; }
  static Threads set_of(rl::thread_id_t thread) { return Threads{1} << thread; }

  Step next_[kThreads];  // what each thread will do when it is its turn
  Threads asleep_ = 0;
  bool repeats_ = false;
};

}  // namespace weft_model
