// SPDX-License-Identifier: MIT
#pragma once
// weft::Generator<T>: a coroutine that gives many values, one at a time, and may wait between them.
//
//     Generator<Row> rows(Connection& connection, std::string query) {
//       Cursor cursor = co_await connection.open(query);
//       while (co_await cursor.fetch()) co_yield cursor.row();
//     }
//
//     Generator<Row> all = rows(connection, "select …");
//     while (std::optional<Row> row = co_await all.next()) use(*row);
//
// Lazy: it runs only inside of next(), as a part of the task that awaits it, and rests at its
// co_yield in between. So it needs no scope of its own: who awaits it waits for it, and a Generator
// at rest is a plain object. For values that are made whether or not somebody asks, use a Channel
// and a task.
//
// T is an object type, also one that only moves: next() gives a std::optional<T>. Or it is an
// lvalue reference: next() gives a pointer, null at the end, to what the co_yield names, valid
// until the following next().
//
// Threads        next(): one at a time, in tasks of any loop. At rest it may be moved between
//                threads, and be destroyed on any; its frame's locals must allow for that.
// Cancellation   `co_await g.next()` is as `co_await task`: no cancel point of its own. Cancelled
//                inside, the wait within is cancelled and the generator's frame is unwound before
//                that of its consumer. It is over then, and a further next() is a UsageError: an
//                end of the sequence would be a lie. To give up one wait and go on, put the timeout
//                inside of the generator.
// Destruction    at rest: its locals die, innermost first, and nothing waits. While a next() is
//                under way: ends the process.
// Errors         what leaves the coroutine is thrown by next(); from then on, as after its end,
//                next() gives nothing. UsageError for one that is empty, or for a second next() at
//                a time.
// At a co_yield  the generator leaves its consumer's task, so its own scope must have no child,
//                lease or CancelNode, and it holds no ignore_cancellation() guard: else the
//                co_yield throws UsageError. (Children in a nursery that is closed again are fine.)
//                It also throws the error of a child that has ended. Its Scope and StopToken are
//                valid until then.
// Allocation     one frame, from the pool. None per value: next() is in line. As a branch of a
//                combinator or in a wrapper it is a task of its own, of one frame.
// Cost           two transfers of control per value; no stack, however many there are (L10). The
//                loop has no turn in between: a generator that never waits lets nobody else run.
//
// There is no elements_of(): what nests is a loop, `while (auto x = co_await inner.next()) co_yield
// std::move(*x);`, at two more transfers per value and level.
//
// Invariants
//   G1  the frame is attached to the slot of a next() exactly while that is under way; at rest it
//       is in no strand, and nothing ties it to one.
//   G2  while it is attached, whoever unwinds the strand owns the frame, else the Generator does. A
//       frame that is destroyed attached tells its Generator.
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/assert.h"
#include "weft/core/frame_pool.h"
#include "weft/core/resume.h"
#include "weft/core/task.h"

namespace weft::inline v0 {

template <class T>
class Generator;

namespace detail {

template <class T>
class GeneratorPromise;

// What next() gives.
template <class T>
using GeneratorItem =
    std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, std::optional<T>>;

// A Generator without its type: who owns the frame, and what became of it.
class GeneratorOwner {
 protected:
  enum class State : std::uint8_t { empty, alive, ended, cancelled };

  GeneratorOwner() = default;
  explicit GeneratorOwner(Frame& frame) noexcept : frame_(&frame), state_(State::alive) {}
  GeneratorOwner(GeneratorOwner&& other) noexcept
      : frame_(std::exchange(other.frame_, nullptr)),
        state_(std::exchange(other.state_, State::empty)) {
    require_rest();
  }
  ~GeneratorOwner() {
    if (frame_) destroy();
  }
  void swap(GeneratorOwner& other) noexcept {
    require_rest();
    other.require_rest();
    std::swap(frame_, other.frame_);
    std::swap(state_, other.state_);
  }

 private:
  friend struct NextSlot;

  void require_rest() const noexcept {
    WEFT_ASSERT(!frame_ || !frame_->is_started(),
                "a Generator is neither moved nor destroyed while a next() is under way");
  }
  void destroy() noexcept {
    require_rest();
    frame_->mark_done();  // its scope takes no children any more
    frame_->handle().destroy();
  }

  Frame* frame_ = nullptr;
  State state_ = State::empty;
};

// The awaiter of a next(), as the generator's frame sees it: the slot of an in-line call that may
// return many times.
struct NextSlot : InlineSlot {
  // Null if there is nothing left to ask. Throws UsageError.
  static Frame* ask(GeneratorOwner& owner);

  NextSlot(GeneratorOwner& asked, std::source_location at)
      : InlineSlot(ask(asked), at), owner(&asked) {}

  // It has ended or failed: the frame is this slot's to destroy.
  void over() noexcept {
    child->detach();
    forget(GeneratorOwner::State::ended);
  }
  // G2: the strand is being unwound.
  void unwound() noexcept { forget(GeneratorOwner::State::cancelled); }

  GeneratorOwner* owner;

 private:
  void forget(GeneratorOwner::State state) noexcept {
    owner->frame_ = nullptr;
    owner->state_ = state;
  }
};

template <class T>
class NextAwaiter final : public NextSlot {
 public:
  using NextSlot::NextSlot;

  [[nodiscard]] bool await_ready() const noexcept { return child == nullptr; }

  template <class Promise>
  Transfer await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    Frame& frame = caller.promise();
    Strand& of = frame.strand();
    strand = &of;
    parent = &frame;
    child->attach_inline(*this);  // G1
    of.top = child;
    return transfer_to(*child);
  }

  GeneratorItem<T> await_resume() {
    if (child && child->is_started()) end();
    return std::move(item_);
  }

 private:
  friend class GeneratorPromise<T>;

  void end() {
    over();
    if (child->failed()) [[unlikely]]
      rethrow();
    child->handle().destroy();
  }

  GeneratorItem<T> item_{};
};

// The value lies in the slot; control goes to whoever asked.
struct YieldToConsumer {
  static constexpr bool await_ready() noexcept { return false; }
  template <class Promise>
  Transfer await_suspend(std::coroutine_handle<Promise> handle) const noexcept {
    Frame& frame = handle.promise();
    InlineSlot& slot = frame.inline_slot();
    slot.strand->top = slot.parent;
    frame.detach();  // G1
    return transfer_to(*slot.parent);
  }
  static constexpr void await_resume() noexcept {}
};

// Throws what keeps a generator from resting, if anything does.
void check_ties(Frame& frame);
inline void require_untied(Frame& frame) {
  if (!frame.nothing_to_join() || !frame.is_untied()) [[unlikely]]
    check_ties(frame);
}

template <class T>
class GeneratorPromise final : public Frame {
 public:
  // No strand in front of it: it is always in line.
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept {
    release_frame(frame, bytes);
  }
#ifdef __clang__  // -fcoro-aligned-allocation
  static void* operator new(std::size_t bytes, std::align_val_t align) {
    return static_cast<std::size_t>(align) > kFrameAlignment ? ::operator new(bytes, align)
                                                             : allocate_frame(bytes);
  }
  static void operator delete(void* frame, std::size_t bytes, std::align_val_t align) noexcept {
    if (static_cast<std::size_t>(align) > kFrameAlignment) {
      ::operator delete(frame, align);
    } else {
      release_frame(frame, bytes);
    }
  }
#endif

  ~GeneratorPromise() {
    if (is_started()) slot().unwound();  // G2
  }

  Generator<T> get_return_object() noexcept { return Generator<T>(*hidden_from_elision(this)); }
  static constexpr std::suspend_always initial_suspend() noexcept { return {}; }
  static constexpr FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { fail_with_current_exception(); }
  static constexpr void return_void() noexcept {}

  template <class U = T>
    requires(!std::is_reference_v<T> && std::constructible_from<T, U &&>)
  YieldToConsumer yield_value(U&& value) {
    require_untied(*this);
    slot().item_.emplace(std::forward<U>(value));
    return {};
  }
  // What it is bound to, also a temporary, lives until the generator goes on.
  YieldToConsumer yield_value(T value)
    requires std::is_reference_v<T>
  {
    require_untied(*this);
    slot().item_ = std::addressof(value);
    return {};
  }

  template <class A>
  decltype(auto) await_transform(A&& awaitable,
                                 std::source_location at = std::source_location::current()) {
    static_assert(
        !requires { std::forward<A>(awaitable).bind(*this); },
        "weft: ok() ends its coroutine with an error as the result, and a Generator has no result: "
        "throw the error, or yield a std::expected");
    return await_in(*this, std::forward<A>(awaitable), at);
  }

 private:
  NextAwaiter<T>& slot() const noexcept { return static_cast<NextAwaiter<T>&>(inline_slot()); }
};

template <class T>
Task<GeneratorItem<T>> next_of(Generator<T>& generator) {
  co_return co_await generator.next();
}

// A next() that has not begun.
template <class T>
class [[nodiscard]] Next {
 public:
  Next(Generator<T>& generator, GeneratorOwner& owner) noexcept
      : generator_(&generator), owner_(&owner) {}

  NextAwaiter<T> await_in_frame(Frame&, std::source_location at) const {
    return NextAwaiter<T>(*owner_, at);
  }
  // As a branch.
  TaskAwaiter<GeneratorItem<T>> operator co_await() const {
    return next_of(*generator_).operator co_await();
  }

 private:
  Generator<T>* generator_;
  GeneratorOwner* owner_;
};

}  // namespace detail

template <class T>
class [[nodiscard("a Generator does nothing until its next() is awaited")]] Generator
    : private detail::GeneratorOwner {
  static_assert(std::is_lvalue_reference_v<T> ||
                    (std::is_object_v<T> && std::same_as<T, std::remove_cv_t<T>>),
                "weft: a Generator gives objects, or lvalue references");

 public:
  using promise_type = detail::GeneratorPromise<T>;
  using value_type = T;

  // Empty: next() throws UsageError.
  Generator() = default;
  Generator(Generator&&) noexcept = default;
  Generator& operator=(Generator&& other) noexcept {
    Generator(std::move(other)).swap(*this);
    return *this;
  }

  // Requires: the Generator stays where it is while that is awaited.
  // Returns:  an awaitable of std::optional<T>, or of a pointer if T is a reference.
  auto next() noexcept { return detail::Next<T>(*this, *this); }

 private:
  friend promise_type;
  explicit Generator(detail::Frame& frame) noexcept : GeneratorOwner(frame) {}
};

}  // namespace weft::inline v0
