// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::NewsCore: how many values something has had, and who waits for the next; no loops, no tasks.
// What Watch and Broadcast share: the values are theirs, and are changed and looked at with this one's lock
// held. Who is to be notified is returned. tests/model/news_test.cc checks this header.
//
// Invariants
//   B1  a node that waits has seen all that there is, and it is not closed: whoever makes that untrue takes all
//       waiters in the same section. So nothing comes between a look and a wait.
#include <cstdint>

#include "weft/atomic/atomic.h"
#include "weft/sync/wait_node.h"

namespace weft::inline v0::detail {

class NewsCore {
 public:
  using Count = std::uint64_t;

  explicit NewsCore(Count count) noexcept : count_(count) {}

  // change(count) puts a value in, under the lock, as the next after so many; or says false. Returns: whether
  // it did; false if this is closed.
  template <class Change>
  bool publish(Change&& change, WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    if (closed_ || !change(Count(count_))) return false;
    count_ = count_ + 1;
    take_all(waiters_, woken);  // B1
    return true;
  }
  void close(WaitList& woken) noexcept {
    StateLock lock(state_mu_);
    closed_ = true;
    take_all(waiters_, woken);  // B1
  }

  // Returns: fn(count), under the lock.
  template <class Fn>
  auto look(Fn&& fn) noexcept {
    StateLock lock(state_mu_);
    return fn(Count(count_));
  }
  // Whether there are more than `seen`, or there will be none.
  [[nodiscard]] bool has_news(Count seen) noexcept {
    StateLock lock(state_mu_);
    return is_news(seen);
  }
  // The same; or false, and the node waits.
  [[nodiscard]] bool look_or_wait(WaitNode& node, Count seen) noexcept {
    StateLock lock(state_mu_);
    if (is_news(seen)) return true;
    node.state = WaitState::waiting;
    waiters_.push_back(node);
    return false;
  }
  // The wait of this node is cancelled, on its home loop. There is nothing that it could have taken.
  [[nodiscard]] Withdrawn withdraw(WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    if (node.state != WaitState::waiting) return Withdrawn::passed_on;
    node.unlink();
    return Withdrawn::unlinked;
  }

  [[nodiscard]] bool has_waiters() noexcept {
    StateLock lock(state_mu_);
    return !waiters_.empty();
  }
  [[nodiscard]] WaitPlace place_of(const WaitNode& node) noexcept {
    StateLock lock(state_mu_);
    return place_in(waiters_, node);
  }

 private:
  [[nodiscard]] bool is_news(Count seen) const noexcept { return closed_ || count_ > seen; }

  StateMutex state_mu_;  // guards everything, and the steps of N1
  Guarded<Count> count_;
  Guarded<bool> closed_ = false;
  WaitList waiters_;
};

}  // namespace weft::inline v0::detail
