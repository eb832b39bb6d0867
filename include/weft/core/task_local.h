// SPDX-License-Identifier: MIT
#pragma once
// weft::TaskLocal<T>: a value that belongs to a task and to every task it starts.
//
//     TaskLocal<std::string> request_id;
//     co_await request_id.with("r-17", handle(request));    // *request_id == "r-17" in there
//
// A binding holds while the awaitable runs. Children started meanwhile share it by reference count
// and keep it for as long as they run, wherever they run; what a child binds is not seen by its
// parent.
//
// Threads        get() from the task, on its home loop. The value is shared: make it const, or safe
//                to share.
// Cancellation   with() passes cancellation through.
// Allocation     one node per with().
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/atomic/atomic.h"
#include "weft/core/task.h"

namespace weft::inline v0 {

namespace detail {

// One binding; the chain of bindings is what a strand holds.
class LocalValue {
 public:
  explicit LocalValue(const void* key) noexcept;
  LocalValue(const LocalValue&) = delete;
  LocalValue& operator=(const LocalValue&) = delete;
  virtual ~LocalValue();

  void add_ref() noexcept { refs_.fetch_add(1, relaxed); }
  // Frees the chain from here on, without recursion, as far as nobody else holds it.
  static void drop_ref(LocalValue* value) noexcept;
  [[nodiscard]] static LocalValue* find(const void* key) noexcept;  // in the running strand

  [[nodiscard]] virtual void* address() noexcept = 0;

 private:
  friend void push_local(std::unique_ptr<LocalValue> value) noexcept;

  const void* key_;
  LocalValue* outer_ = nullptr;
  Atomic<std::uint32_t> refs_{1};
};

template <class T>
class LocalValueOf final : public LocalValue {
 public:
  LocalValueOf(const void* key, T&& value) : LocalValue(key), value_(std::move(value)) {}
  [[nodiscard]] void* address() noexcept override { return &value_; }

 private:
  T value_;
};

// A Task that is not awaited in line, also where it could be.
template <class T>
class OwnStrand {
 public:
  explicit OwnStrand(Task<T> task) noexcept : task_(std::move(task)) {}
  TaskAwaiter<T> operator co_await() && { return std::move(task_).operator co_await(); }

 private:
  Task<T> task_;
};

// Makes `value` the running strand's innermost binding. Those that it had lie behind it, and the
// strand's reference to them is the binding's now.
void push_local(std::unique_ptr<LocalValue> value) noexcept;

}  // namespace detail

template <class T>
class TaskLocal {
 public:
  TaskLocal() = default;
  TaskLocal(const TaskLocal&) = delete;
  TaskLocal& operator=(const TaskLocal&) = delete;

  // nullptr where nothing is bound.
  [[nodiscard]] T* get() const noexcept {
    detail::LocalValue* found = detail::LocalValue::find(this);
    return found ? static_cast<T*>(found->address()) : nullptr;
  }
  [[nodiscard]] T& operator*() const {
    if (T* value = get()) return *value;
    detail::throw_usage_error("this TaskLocal is not bound here: await it inside with(value, ...)");
  }
  [[nodiscard]] T* operator->() const { return &**this; }

  // Runs `awaitable` with the value bound, as a strand of its own.
  template <class A>
  [[nodiscard]] auto with(T value, A&& awaitable) {
    // The value goes into its node here: a parameter of a coroutine whose move throws meets a fault
    // of clang's at -O0, which keeps the exception in the frame that it has freed.
    return detail::OwnStrand(
        bound(std::make_unique<detail::LocalValueOf<T>>(this, std::move(value)),
              std::decay_t<A>(std::forward<A>(awaitable))));
  }

 private:
  template <class A>
  static Task<AwaitResult<A>> bound(std::unique_ptr<detail::LocalValue> value, A awaitable) {
    detail::push_local(std::move(value));
    co_return co_await std::move(awaitable);
  }
};

}  // namespace weft::inline v0
