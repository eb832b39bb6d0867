// SPDX-License-Identifier: MIT
#pragma once
// weft::LockGuard<Lock>: the right to be inside of a lock alone, and the duty to leave: what lock() of
// Mutex, LocalMutex and SharedMutex gives.
//
//     MutexGuard lock = co_await mutex.lock();
//
// Empty when it was moved from, released or unlocked. It stays on the loop that locked it; within that
// it may be moved, and then nobody knows any more which task will unlock (inspect/deadlock.h).
//
// Threads        the loop that locked it.
#include <utility>

namespace weft::inline v0 {

template <class Lock>
class [[nodiscard]] LockGuard {
 public:
  LockGuard() = default;
  LockGuard(LockGuard&& other) noexcept : mutex_(other.release()) {}
  LockGuard& operator=(LockGuard&& other) noexcept {
    if (this != &other) {
      unlock();
      mutex_ = other.release();
    }
    return *this;
  }
  ~LockGuard() { unlock(); }

  // Before the end of the block. Without effect if it is empty.
  void unlock() noexcept {
    if (Lock* mutex = std::exchange(mutex_, nullptr)) mutex->unlock();
  }
  // Gives the duty to the caller, who calls unlock() of the lock. Returns: the lock, or null.
  [[nodiscard]] Lock* release() noexcept {
    if (mutex_) mutex_->guard_moved();
    return std::exchange(mutex_, nullptr);
  }
  explicit operator bool() const noexcept { return mutex_ != nullptr; }

 private:
  friend Lock;
  friend class Condition;
  explicit LockGuard(Lock& mutex) noexcept : mutex_(&mutex) {}

  Lock* mutex_ = nullptr;
};

}  // namespace weft::inline v0
