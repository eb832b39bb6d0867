// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::CallQueue: what a loop of another library is asked to call soon, from any thread.
//
// For libraries whose one thread-safe wake-up carries nothing and may be merged with others
// (uv_async_send, a source's ready time, a posted event): the calls wait here, and one wake-up takes
// all.
//
// Threads        push(): any. Everything else: the loop's.
// Allocation     the list grows by doubling, and keeps its room while nothing comes in between.
#include <mutex>
#include <vector>

namespace weft::inline v0::detail {

class CallQueue {
 public:
  CallQueue() = default;
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  // Nothing is left uncalled: who asked has something on the heap to get rid of.
  ~CallQueue() { call_all(); }

  // Returns: true if the loop must be woken; false if someone has done that already.
  bool push(void (*fn)(void*), void* context) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(Call(fn, context));
    return waiting_.size() == 1;
  }
  // Calls what is there now; what those push is for the next time.
  void call_all() {
    std::vector<Call> now;
    {
      std::lock_guard lock(mutex_);
      now.swap(waiting_);
    }
    for (const Call& call : now) call.fn(call.context);
    now.clear();
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) waiting_.swap(now);  // for its room
  }

 private:
  struct Call {
    Call(void (*f)(void*), void* c) noexcept : fn(f), context(c) {}
    void (*fn)(void*);
    void* context;
  };

  std::mutex mutex_;
  std::vector<Call> waiting_;
};

}  // namespace weft::inline v0::detail
