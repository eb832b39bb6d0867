// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::ForeignAwaiter: makes any C++20 awaiter one of weft's own (L13).
//
// The awaiter inside gets a handle to a forged frame that lives here. Resuming that handle, on any
// thread, posts the waiter home; it never runs it inline. Resuming it twice is refused with a
// message. After the co_await has ended the handle must not be used any more. With
// WEFT_AWAITABLE_STATE_DEBUG the frame is a record of its own, which stays in quarantine when the
// wait is over: a handle that is resumed or destroyed late ends the process with a message that
// names the awaiter. The last kQuarantinedFrames waits are watched so.
//
// Allocation     none; with WEFT_AWAITABLE_STATE_DEBUG one record per wait that suspends.
//
// Invariants
//   F1  `resumed` goes from false to true once per wait; whoever changes it owes the one post (L6).
//   F2  a cancel that finds `resumed` set does not call await_cancel(): the wait has ended, its
//       result is delivered.
//   F3  when the wait is over `resumed` is set, so that a late resume reads nothing but its record.
#include <coroutine>
#include <cstddef>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "weft/base/assert.h"
#include "weft/core/awaiter_state.h"
#include "weft/core/concepts.h"
#include "weft/core/executor.h"
#include "weft/core/frame_abi.h"
#include "weft/core/resume.h"

namespace weft::inline v0::detail {

// Frames that are watched for late use, in the whole process; the oldest makes room.
inline constexpr std::size_t kQuarantinedFrames = 1024;

// What a foreign handle points to.
struct ForeignFrame : ForgedFrame {
  ForeignFrame() noexcept;

  Atomic<bool> resumed{false};  // F1
  HomeIndex home = 0;
#ifdef WEFT_AWAITABLE_STATE_DEBUG
  Atomic<bool> ended{false};  // in quarantine
  Runnable* waiting = nullptr;
  const std::type_info* awaiter = nullptr;
#endif
};

#ifdef WEFT_AWAITABLE_STATE_DEBUG
class ForeignFrameHolder {
 protected:
  ForeignFrameHolder() = default;
  ~ForeignFrameHolder() { retire(); }
  // The wait is over: what happens to its frame from now on is late.
  void retire() noexcept;
  void renew(Runnable& waiting, const std::type_info& awaiter);
  [[nodiscard]] ForeignFrame& frame() noexcept { return *frame_; }
  [[nodiscard]] const ForeignFrame& frame() const noexcept { return *frame_; }

 private:
  ForeignFrame* frame_ = nullptr;  // none before the wait begins
};
// How many frames are in quarantine now.
[[nodiscard]] std::size_t quarantine_size() noexcept;
#else
class ForeignFrameHolder : protected ForeignFrame {
 protected:
  static void renew(Runnable&, const std::type_info&) noexcept {}
  [[nodiscard]] ForeignFrame& frame() noexcept { return *this; }
  [[nodiscard]] const ForeignFrame& frame() const noexcept { return *this; }
};
#endif

// The part that does not depend on the awaiter's type.
class ForeignResume : private ForeignFrameHolder, private Runnable {
 public:
  ForeignResume() noexcept;
  ForeignResume(const ForeignResume&) = delete;
  ForeignResume& operator=(const ForeignResume&) = delete;

 protected:
  ~ForeignResume();

  // Requires: on the waiter's home loop.
  std::coroutine_handle<> arm(Continuation waiter, const std::type_info& awaiter);
  // Ends the wait without a post. Returns: false if the handle was resumed already.
  bool disarm() noexcept { return !frame().resumed.exchange(true, acq_rel); }
  [[nodiscard]] bool was_resumed() const noexcept { return frame().resumed.load(acquire); }
  [[nodiscard]] std::coroutine_handle<> handle() noexcept { return frame().handle(); }

 private:
  friend struct ForeignFrame;
  static void on_resume(ForgedFrame* forged);
  static void on_destroy(ForgedFrame* forged);
  static void on_post(Runnable& work) noexcept;
  static Runnable& waiting_on(ForeignFrame& frame) noexcept;

  Continuation waiter_;
};

// Stored: the awaiter, by value (built in place) or by reference.
template <class Stored>
class ForeignAwaiter : private ForeignResume {
  using Aw = std::remove_reference_t<Stored>;

 public:
  using native_awaiter = void;

  template <class A>
  explicit ForeignAwaiter(std::in_place_t, A&& awaitable)
      : awaiter_(get_awaiter(std::forward<A>(awaitable))) {}

  bool await_ready() { return awaiter_.await_ready(); }

  bool await_suspend(Continuation waiter) {
    std::coroutine_handle<> handle = arm(waiter, typeid(Aw));
    using Result = decltype(awaiter_.await_suspend(handle));
    if constexpr (std::is_void_v<Result>) {
      awaiter_.await_suspend(handle);
      return true;
    } else if constexpr (std::is_same_v<Result, bool>) {
      if (awaiter_.await_suspend(handle)) return true;
      WEFT_ASSERT(disarm(), "await_suspend() that resumed its handle does not return false");
      return false;
    } else {
      std::coroutine_handle<> next = awaiter_.await_suspend(handle);
      if (next == handle) {
        WEFT_ASSERT(disarm(), "await_suspend() that resumed its handle does not return it");
        return false;
      }
      resume_foreign(next);
      return true;
    }
  }

  decltype(auto) await_resume() { return awaiter_.await_resume(); }

  EarlyCancelType<Aw> await_early_cancel() noexcept {
    if constexpr (kSkippable<Aw>) {
      call_early_cancel<Aw>(awaiter_);
      return {};
    } else if constexpr (std::is_same_v<EarlyCancelType<Aw>, std::false_type>) {
      asked_ = true;
      awaiter_.await_early_cancel();
      return {};
    } else {
      asked_ = true;
      return awaiter_.await_early_cancel();
    }
  }

  bool await_cancel(Continuation) noexcept
    requires HasCancel<Aw>
  {
    if (was_resumed()) return false;  // F2
    asked_ = true;
    bool over = call_cancel<Aw>(awaiter_, handle());
    if (over) WEFT_ASSERT(disarm(), "await_cancel() that resumed its handle returns false");
    return over;
  }

  [[nodiscard]] bool await_must_resume() const noexcept {
    return !asked_ || call_must_resume<Aw>(awaiter_);
  }

  void await_set_executor(Executor* executor) noexcept {
    if constexpr (HasSetExecutor<Aw>) awaiter_.await_set_executor(executor);
  }

  void await_introspect(auto& tree) noexcept { tree.child(awaiter_); }

 private:
  Stored awaiter_;
  bool asked_ = false;
};

// What weft drives: its own awaiters as they are, all others inside a ForeignAwaiter.
template <class A>
using Adopted =
    std::conditional_t<Native<AwaiterOf<A>>, AwaiterOf<A>, ForeignAwaiter<AwaiterOf<A>>>;

template <class A>
Adopted<A> adopt(A&& awaitable) {
  static_assert(check_hooks<AwaiterOf<A>>());
  if constexpr (Native<AwaiterOf<A>>) {
    return get_awaiter(std::forward<A>(awaitable));
  } else {
    return Adopted<A>(std::in_place, std::forward<A>(awaitable));
  }
}

#ifdef WEFT_AWAITABLE_STATE_DEBUG
// ok() may end the frame that its awaiter lives in; the diagram does not know that.
template <class Aw>
concept EndsItsFrame = requires { typename std::remove_cvref_t<Aw>::ends_its_frame; };

template <class A>
using Hosted = std::conditional_t<EndsItsFrame<Adopted<A>>, Adopted<A>, CheckedAwaiter<Adopted<A>>>;
template <class A>
Hosted<A> host(A&& awaitable) {
  if constexpr (EndsItsFrame<Adopted<A>>) {
    return adopt(std::forward<A>(awaitable));
  } else {
    return Hosted<A>(std::in_place,
                     [&]() -> Adopted<A> { return adopt(std::forward<A>(awaitable)); });
  }
}
#else
template <class A>
using Hosted = Adopted<A>;
template <class A>
Hosted<A> host(A&& awaitable) {
  return adopt(std::forward<A>(awaitable));
}
#endif

}  // namespace weft::inline v0::detail
