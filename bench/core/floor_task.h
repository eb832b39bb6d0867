// SPDX-License-Identifier: MIT
#pragma once
// weft::bench::FloorTask: the least that an awaited coroutine can cost.
//
// Not a library: it knows no cancellation, no scope, no executor and no exceptions. One
// thread-local free list of frames per size, symmetric transfer both ways.

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

namespace weft::bench {

// Free frames by size class. Single-threaded use: a frame is freed where it was allocated.
class FrameList {
 public:
  static void* allocate(std::size_t bytes) {
    const std::size_t index = class_of(bytes);
    if (index >= kClasses) return ::operator new(bytes);
    Node* head = heads_[index];
    if (head == nullptr) return ::operator new((index + 1) * kGranule);
    heads_[index] = head->next;
    return head;
  }
  static void release(void* frame, std::size_t bytes) {
    const std::size_t index = class_of(bytes);
    if (index >= kClasses) return ::operator delete(frame);
    heads_[index] = new (frame) Node{heads_[index]};
  }

 private:
  struct Node {
    Node* next;
  };
  static constexpr std::size_t kGranule = 32;
  static constexpr std::size_t kClasses = 32;
  static constexpr std::size_t class_of(std::size_t bytes) { return (bytes - 1) / kGranule; }

  static inline constinit thread_local Node* heads_[kClasses] = {};
};

class [[nodiscard]] FloorTask {
 public:
  struct promise_type {
    std::coroutine_handle<> continuation = std::noop_coroutine();
    int value = 0;

    static void* operator new(std::size_t bytes) { return FrameList::allocate(bytes); }
    static void operator delete(void* frame, std::size_t bytes) {
      FrameList::release(frame, bytes);
    }

    FloorTask get_return_object() { return FloorTask(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Transfer {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle self) noexcept {
          return self.promise().continuation;
        }
        void await_resume() noexcept {}
      };
      return Transfer{};
    }
    void return_value(int result) noexcept { value = result; }
    void unhandled_exception() noexcept { std::terminate(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  FloorTask(FloorTask&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  FloorTask& operator=(FloorTask&&) = delete;
  ~FloorTask() {
    if (handle_) handle_.destroy();
  }

  auto operator co_await() && noexcept {
    struct Awaiter {
      Handle child;
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
        child.promise().continuation = parent;
        return child;
      }
      int await_resume() noexcept { return child.promise().value; }
    };
    return Awaiter{handle_};
  }

  // Requires: nothing below this task waits for anything but its children.
  int run() && {
    handle_.resume();
    return handle_.promise().value;
  }

 private:
  explicit FloorTask(Handle handle) : handle_(handle) {}
  Handle handle_;
};

FloorTask floor_child(int value);  // floor_child.cc

}  // namespace weft::bench
