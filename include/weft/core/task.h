// SPDX-License-Identifier: MIT
#pragma once
// weft::Task<T>: a coroutine that has not begun. Await it, start it in a scope, or let it go.
//
//     Task<int> answer() { co_return 42; }
//     Task<void> ask() { int n = co_await answer(); }
//
// Lazy: nothing runs before that. Move-only; used once. T may be void, a value, a move-only type or
// a reference.
//
// Threads        a Task that has not begun may move between threads and be destroyed on any. Once
//                begun it runs on its home loop only (L1).
// Cancellation   `co_await task` is no cancel point of its own: a cancelled task still enters its
//                child, which runs to its first cancellable await. Cancellation destroys frames,
//                innermost first; catch (...) does not see it (L3).
// The way out    co_return: locals die, children still running are joined. An exception: they are
//                cancelled first. Cancelled: children are cancelled and joined, then locals die
//                (L9).
// Allocation     one block per Task, from the frame pool; often none when it is awaited where it is
//                called (clang 22).
//
// A lambda coroutine refers to its closure, which must outlive it: hand the lambda itself to
// co_await, start() or a combinator, and weft keeps it alive. On g++ 12, give it a name first.
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/core/await_adapter.h"
#include "weft/core/frame_pool.h"
#include "weft/core/invoked.h"
#include "weft/core/resume.h"

namespace weft::inline v0 {

template <class T = void>
class Task;
template <class T = void>
class StartedTask;
class PromiseChildLease;

namespace detail {

template <class T>
class TaskPromise;
template <class T>
class TaskAwaiter;

// A result where it is kept: references as pointers, void as nothing.
struct Nothing {};
template <class T>
using Kept =
    std::conditional_t<std::is_void_v<T>, Nothing,
                       std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;

template <class T>
T give(Kept<T>& kept) {
  if constexpr (std::is_void_v<T>) {
    return;
  } else if constexpr (std::is_reference_v<T>) {
    return static_cast<T>(*kept);
  } else {
    return std::move(kept);
  }
}

// --- The block: [ value | Strand | frame ] ------------------------------------------------------

template <class T>
struct TaskBlock {
  using Value = Kept<T>;
  static constexpr bool kHasValue = !std::is_void_v<T>;
  static constexpr std::size_t kAlign = alignof(Value) > kFrameAlignment ? alignof(Value)
                                                                         : kFrameAlignment;
  static constexpr std::ptrdiff_t header(std::size_t align) noexcept {
    std::size_t bytes = sizeof(Strand) + (kHasValue ? sizeof(Value) : 0);
    return static_cast<std::ptrdiff_t>((bytes + align - 1) / align * align);
  }
#ifndef __clang__
  static_assert(alignof(Value) <= kFrameAlignment,
                "weft: g++ cannot place a Task whose result is aligned to more than 16 bytes; "
                "return it by pointer");
#endif

  // Where it is does not depend on the frame's alignment: the coroutine that makes the value does
  // not know it.
  static Value& value_of(Strand& strand) noexcept {
    return *std::launder(
        reinterpret_cast<Value*>(reinterpret_cast<std::byte*>(&strand + 1) - header(kAlign)));
  }

  static void* allocate(std::size_t frame_bytes, std::size_t align) {
    if (align < kAlign) align = kAlign;
    std::size_t bytes = frame_bytes + static_cast<std::size_t>(header(align));
    auto* block = static_cast<std::byte*>(align > kFrameAlignment
                                              ? ::operator new(bytes, std::align_val_t{align})
                                              : allocate_frame(bytes));
    return block + header(align);
  }

  static void release(std::byte* frame, std::size_t frame_bytes, std::size_t align) noexcept {
    std::byte* block = frame - header(align);
    if (align > kFrameAlignment) {
      ::operator delete(block, std::align_val_t{align});
    } else {
      release_frame(block, frame_bytes + static_cast<std::size_t>(header(align)));
    }
  }

  // The frame is gone. Its block stays while the strand has references.
  static void frame_gone(void* frame, std::size_t frame_bytes, std::size_t align) noexcept {
    if (align < kAlign) align = kAlign;
    if (!Frame::was_first(frame)) {
      release(static_cast<std::byte*>(frame), frame_bytes, align);
      return;
    }
    new (frame) Ended{.error = {},
                      .free_block = &free_block,
                      .frame_bytes = frame_bytes,
                      .align = static_cast<std::uint32_t>(align),
                      .kind = OutcomeKind::none,
                      .has_value = false,
                      .to_handle = false,
                      .read = false};
  }

  static void free_block(Strand& strand, std::size_t frame_bytes, std::uint32_t align,
                         bool with_value) noexcept {
    if constexpr (kHasValue) {
      if (with_value) std::destroy_at(&value_of(strand));
    }
    release(reinterpret_cast<std::byte*>(&strand + 1), frame_bytes, align);
  }
};

static_assert(sizeof(Ended) <= std::size_t{kPromiseOffset} + sizeof(Frame),
              "Ended must fit where the smallest frame was");

// --- Awaited in line ----------------------------------------------------------------------------

// The awaiter of `co_await task` inside a Task: the child joins the caller's strand, and its result
// is built here.
template <class T>
class InlineAwaiter : public InlineSlot {
 public:
  InlineAwaiter(Frame* child, std::source_location at) noexcept : InlineSlot(child, at) {}
  InlineAwaiter(const InlineAwaiter&) = delete;
  InlineAwaiter& operator=(const InlineAwaiter&) = delete;
  // The child is gone: await_resume() destroyed it, or the loop that unwinds this strand.
  ~InlineAwaiter() {
    if constexpr (kFlagged) {
      if (has_value_) std::destroy_at(&value_);
    }
  }

  static constexpr bool await_ready() noexcept { return false; }

  template <class Promise>
  Transfer await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    Frame& frame = caller.promise();
    Strand& of = frame.strand();
    strand = &of;
    parent = &frame;
    child->attach_inline(*this);
    of.top = child;
    return transfer_to(*child);
  }

  T await_resume() {
    // The frame goes first: nobody sees a result while what produced it is still there (L7).
    if (child->failed()) [[unlikely]]
      rethrow();
    child->handle().destroy();
    return give<T>(value_);
  }

  template <class... Args>
  void emplace(Args&&... args) {
    if constexpr (kFlagged) {
      if (has_value_) [[unlikely]] {  // a second co_return
        has_value_ = false;
        std::destroy_at(&value_);
      }
    }
    std::construct_at(&value_, std::forward<Args>(args)...);
    if constexpr (kFlagged) has_value_ = true;
  }

 private:
  static constexpr bool kFlagged = !std::is_trivially_destructible_v<Kept<T>>;

  union {
    Kept<T> value_;
  };
  [[no_unique_address]] std::conditional_t<kFlagged, bool, Nothing> has_value_{};
};

// --- The promise --------------------------------------------------------------------------------

struct FinalAwaiter {
  static constexpr bool await_ready() noexcept { return false; }
  template <class Promise>
  Transfer await_suspend(std::coroutine_handle<Promise> handle) const noexcept {
    Promise& frame = handle.promise();
    // The hints lay out the in-line return as one straight run.
    if (!frame.nothing_to_join()) [[unlikely]] {
      if (CancellationRuntime::wait_at_end(frame)) return transfer_to_loop();
    }
    if (frame.is_first()) [[unlikely]] {
      frame.mark_done();  // the loop destroys the frame and tells whoever waits
      return transfer_to_loop();
    }
    InlineSlot& slot = frame.inline_slot();
    slot.strand->top = slot.parent;
    return transfer_to(*slot.parent);
  }
  void await_resume() const noexcept {}
};

template <class T>
inline constexpr bool kIsTask = false;
template <class T>
inline constexpr bool kIsTask<Task<T>> = true;

// Where a result goes: into the awaiter of an in-line call, or in front of the strand. A coroutine
// may co_return twice: a local's destructor throws after the first time, and it catches that.
template <class T>
class TaskResult : public Frame {
 public:
  template <class U = T>
    requires(std::is_reference_v<T> ? std::convertible_to<U &&, T>
                                    : std::constructible_from<T, U &&>)
  void return_value(U&& value) {
    if constexpr (std::is_reference_v<T>) {
      T bound = static_cast<T>(std::forward<U>(value));
      keep(std::addressof(bound));
    } else {
      keep(std::forward<U>(value));
    }
  }

 private:
  template <class U>
  void keep(U&& value) {
    if (is_first()) [[unlikely]] {
      if constexpr (!std::is_trivially_destructible_v<Kept<T>>) {
        if (has_value()) [[unlikely]] {  // a second co_return
          unmark_value();
          std::destroy_at(&TaskBlock<T>::value_of(strand()));
        }
      }
      std::construct_at(&TaskBlock<T>::value_of(strand()), std::forward<U>(value));
      mark_value();
    } else {
      static_cast<InlineAwaiter<T>&>(inline_slot()).emplace(std::forward<U>(value));
    }
  }
};

template <>
class TaskResult<void> : public Frame {
 public:
  void return_void() noexcept {}
};

// The wrong way to await, with a message that says so.
template <class A>
consteval void check_awaited() {
  using Plain = std::remove_cvref_t<A>;
  static_assert(!kIsTask<Plain> || !std::is_lvalue_reference_v<A>,
                "weft: a Task is awaited once and is used up by it: co_await std::move(task)");
  if constexpr (!Awaitable<A> && std::invocable<A>) check_callable<A>();
}

// What `co_await x` becomes in a coroutine of weft's own, whose promise is a Frame.
template <class Promise, class U>
InlineAwaiter<U> await_in(Promise&, Task<U>&& task, std::source_location at) {
  return InlineAwaiter<U>(task.release_for_await(), at);
}
template <class Promise, class A>
decltype(auto) await_in(Promise& promise, A&& awaitable, std::source_location at) {
  check_awaited<A>();
  Frame& frame = promise;
  if constexpr (requires { std::forward<A>(awaitable).bind(promise); }) {  // ok()
    return await_in(promise, std::forward<A>(awaitable).bind(promise), at);
  } else if constexpr (requires { std::forward<A>(awaitable).await_in_frame(frame, at); }) {
    return std::forward<A>(awaitable).await_in_frame(frame, at);
  } else if constexpr (requires { std::forward<A>(awaitable).await_in_frame(frame); }) {
    return std::forward<A>(awaitable).await_in_frame(frame);
  } else if constexpr (Awaitable<A>) {
    frame.strand().where = at;
    return AwaitAdapter<A>(std::forward<A>(awaitable));
  } else {
    static_assert(std::invocable<A>,
                  "weft: this is neither awaitable nor a function that returns an awaitable");
    using Made = std::invoke_result_t<A>;
    if constexpr (kIsTask<Made>) {
      // In line. The callable outlives it: it is named, or a temporary of this very expression.
      return await_in(promise, std::invoke(std::forward<A>(awaitable)), at);
    } else {
      return await_in(promise, as_awaitable(std::forward<A>(awaitable)), at);
    }
  }
}

// Hides a frame from clang's heap elision by analysis, which would also elide frames that become
// strands, or that a loop destroys. The attribute on Task elides those that are awaited where they
// are called, and only those.
inline Frame* hidden_from_elision(Frame* frame) noexcept {
#ifdef __clang__
  asm volatile("" : "+r"(frame));
#endif
  return frame;
}

template <class T>
class TaskPromise final : public TaskResult<T> {
 public:
  static void* operator new(std::size_t bytes) {
    return TaskBlock<T>::allocate(bytes, kFrameAlignment);
  }
  static void operator delete(void* frame, std::size_t bytes) noexcept {
    TaskBlock<T>::frame_gone(frame, bytes, kFrameAlignment);
  }
#ifdef __clang__  // -fcoro-aligned-allocation
  static void* operator new(std::size_t bytes, std::align_val_t align) {
    return TaskBlock<T>::allocate(bytes, static_cast<std::size_t>(align));
  }
  static void operator delete(void* frame, std::size_t bytes, std::align_val_t align) noexcept {
    TaskBlock<T>::frame_gone(frame, bytes, static_cast<std::size_t>(align));
  }
#endif

  Task<T> get_return_object() noexcept { return Task<T>(hidden_from_elision(this)); }
  static constexpr std::suspend_always initial_suspend() noexcept { return {}; }
  static constexpr FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { this->fail_with_current_exception(); }

  template <class U>
  InlineAwaiter<U> await_transform(Task<U>&& task,
                                   std::source_location at = std::source_location::current()) {
    return await_in(*this, std::move(task), at);
  }

  template <class A>
  decltype(auto) await_transform(A&& awaitable,
                                 std::source_location at = std::source_location::current()) {
    return await_in(*this, std::forward<A>(awaitable), at);
  }
};

}  // namespace detail

#if defined(__clang__) && __has_cpp_attribute(clang::coro_await_elidable)
#define WEFT_CORO_ELIDABLE [[clang::coro_await_elidable]]
#else
#define WEFT_CORO_ELIDABLE
#endif
#ifdef __clang__
#define WEFT_TRIVIAL_ABI [[clang::trivial_abi]]  // returned in a register
#else
#define WEFT_TRIVIAL_ABI
#endif

template <class T>
class [[nodiscard(
    "a Task does nothing until it is awaited or started")]] WEFT_CORO_ELIDABLE WEFT_TRIVIAL_ABI
    Task {
 public:
  using promise_type = detail::TaskPromise<T>;
  using value_type = T;

  // Awaiting or starting an empty Task throws UsageError.
  Task() = default;
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~Task() {
    if (frame_) frame_->handle().destroy();
  }

  [[nodiscard]] bool valid() const noexcept { return frame_ != nullptr; }

  // --- Starting it: a strand of its own, a child of a scope. The handle cancels it when it is ---
  // destroyed. -------------

  // On the scope's home loop, from its ready ring. Requires: called there.
  [[nodiscard]] StartedTask<T> start(Scope& scope) &&;
  // On this loop, on the caller's stack, up to its first suspension.
  [[nodiscard]] StartedTask<T> start_immediate(Scope& scope) &&;
  // In the scope of the task that runs now. UsageError outside of one.
  [[nodiscard]] StartedTask<T> start_in_current_scope() &&;
  [[nodiscard]] StartedTask<T> start_immediate_in_current_scope() &&;
  // In a scope held by a lease, which is consumed. Any thread; it runs on the scope's home.
  [[nodiscard]] StartedTask<T> start_with_parent_scope(PromiseChildLease lease) &&;
  // The same, on this loop and at once.
  [[nodiscard]] StartedTask<T> start_immediate_with_parent_scope(PromiseChildLease lease) &&;

  // Awaited anywhere but in a Task's own co_await: a strand of its own.
  detail::TaskAwaiter<T> operator co_await() && {
    return detail::TaskAwaiter<T>(release_for_await());
  }

  // For weft's own use: hands the frame over, or throws UsageError if there is none.
  [[nodiscard]] detail::Frame* release_for_await() {
    if (!frame_)
      detail::throw_usage_error("this Task is empty: it was moved from, awaited or started before");
    return std::exchange(frame_, nullptr);
  }

 private:
  friend promise_type;
  explicit Task(detail::Frame* frame) noexcept : frame_(frame) {}

  detail::Frame* frame_ = nullptr;
};

}  // namespace weft::inline v0

#include "weft/core/started_task.h"  // IWYU pragma: keep: Task's starts return its types
