// SPDX-License-Identifier: MIT
#include "weft/testing/sequencer.h"

#include "weft/base/assert.h"

namespace weft::inline v0::testing {

Sequencer::~Sequencer() {
  WEFT_ASSERT(!waiting_, "a Sequencer outlives the steps that wait for it");
}

unsigned Sequencer::passed() const {
  std::lock_guard lock(mutex_);
  return next_ - 1;
}

void Sequencer::pass(unsigned number) noexcept {
  Step* woken = nullptr;
  {
    std::lock_guard lock(mutex_);
    next_ = number + 1;
    for (Step** at = &waiting_; *at; at = &(*at)->next_waiting_) {
      if ((*at)->number_ != next_) continue;
      woken = *at;
      *at = woken->next_waiting_;
      break;
    }
  }
  if (!woken) return;
  bool posted = detail::port_at(woken->home_)
                    .post(detail::PostEntry(*woken, detail::PostKind::runnable));  // Q2
  WEFT_ASSERT(posted, "L12: a loop does not end while a strand of its waits");
}

bool Sequencer::Step::await_suspend(detail::Continuation waiter) {
  waiter_ = waiter;
  home_ = Executor::current("Sequencer::step()").home();
  std::lock_guard lock(sequencer_.mutex_);
  if (number_ < sequencer_.next_) {
    detail::throw_usage_error("this step of the Sequencer has been passed already");
  }
  if (number_ == sequencer_.next_) return false;
  next_waiting_ = sequencer_.waiting_;
  sequencer_.waiting_ = this;
  return true;
}

bool Sequencer::Step::await_cancel(detail::Continuation) noexcept {
  std::lock_guard lock(sequencer_.mutex_);
  for (Step** at = &sequencer_.waiting_; *at; at = &(*at)->next_waiting_) {
    if (*at != this) continue;
    *at = next_waiting_;
    return true;
  }
  return false;  // the post is under way
}

void Sequencer::Step::arrived(Runnable& work) noexcept { static_cast<Step&>(work).waiter_.wake(); }

}  // namespace weft::inline v0::testing
