// SPDX-License-Identifier: MIT
#pragma once
// The awaiter protocol, as concepts: what a type must have to be awaited, and what it promises
// about cancellation.
//
// An awaiter has await_ready(), await_suspend(handle), await_resume(), and may have
//
//   bool await_early_cancel() noexcept
//       cancel before the start. true: never start. Absent: true.
//   bool await_cancel(handle) noexcept
//       cancel while it runs. true: over, the handle will not be resumed; false: it will be resumed
//       once, as ever. Absent: the value is delivered, and cancellation strikes at the next co_await.
//   bool await_must_resume() const noexcept
//       after a cancel that did not succeed at once: was there a result after all?
//   void await_set_executor(Executor*)    called before await_suspend().
//   void await_introspect(auto& tree)     describes itself for the task tree.
//
// Returning std::true_type or std::false_type instead of bool says it at compile time, and weft's
// wrappers pass it on. A type whose hooks contradict each other does not compile where it is
// awaited, and the message says which and why.
#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

#include "weft/core/continuation.h"

namespace weft::inline v0 {

namespace detail {

// Probes pass weft's awaiters a Continuation and everyone else's a handle.
template <class Aw>
concept Native = requires(std::remove_reference_t<Aw>& awaiter, Continuation waiter) {
  typename std::remove_cvref_t<Aw>::native_awaiter;
  awaiter.await_suspend(waiter);
};
// An awaiter of weft's own whose await_cancel() ends the wait at once and runs nobody's code.
template <class Aw>
concept CancelsAtOnce =
    Native<Aw> && requires { typename std::remove_cvref_t<Aw>::cancels_at_once; };
template <class Aw>
using HandleFor = std::conditional_t<Native<Aw>, Continuation, std::coroutine_handle<>>;

template <class T>
concept SuspendResult =
    std::is_void_v<T> || std::same_as<T, bool> || std::convertible_to<T, std::coroutine_handle<>>;

}  // namespace detail

template <class Aw>
concept Awaiter = requires(std::remove_reference_t<Aw>& awaiter, detail::HandleFor<Aw> handle) {
  { awaiter.await_ready() } -> std::convertible_to<bool>;
  { awaiter.await_suspend(handle) } -> detail::SuspendResult;
  awaiter.await_resume();
};

namespace detail {

template <class A>
concept HasMemberCoAwait =
    requires(A&& awaitable) { std::forward<A>(awaitable).operator co_await(); };
template <class A>
concept HasFreeCoAwait = requires(A&& awaitable) { operator co_await(std::forward<A>(awaitable)); };

}  // namespace detail

// The awaiter behind an awaitable: what its operator co_await returns, or the thing itself. A
// prvalue is built in place.
template <class A>
  requires(detail::HasMemberCoAwait<A> || detail::HasFreeCoAwait<A> || Awaiter<A>)
decltype(auto) get_awaiter(A&& awaitable) {
  if constexpr (detail::HasMemberCoAwait<A>) {
    return std::forward<A>(awaitable).operator co_await();
  } else if constexpr (detail::HasFreeCoAwait<A>) {
    return operator co_await(std::forward<A>(awaitable));
  } else {
    return static_cast<std::remove_reference_t<A>&>(awaitable);
  }
}

namespace detail {

template <class A>
using AwaiterOf = decltype(get_awaiter(std::declval<A>()));
struct AnyResult;

}  // namespace detail

// The type of `co_await a`.
template <class A>
using AwaitResult =
    decltype(std::declval<std::remove_reference_t<detail::AwaiterOf<A>>&>().await_resume());

// weft::Awaitable<int> auto f();   or   weft::Awaitable auto g();
template <class A, class Result = detail::AnyResult>
concept Awaitable = requires(A&& awaitable) {
  { get_awaiter(std::forward<A>(awaitable)) } -> Awaiter;
} && (std::same_as<Result, detail::AnyResult> || std::convertible_to<AwaitResult<A>, Result>);

// --- The hooks ----------------------------------------------------------------------------------

namespace detail {

template <class Aw>
concept HasEarlyCancel = requires(Aw& awaiter) { awaiter.await_early_cancel(); };
template <class Aw>
concept HasCancel = requires(Aw& awaiter, HandleFor<Aw> handle) { awaiter.await_cancel(handle); };
template <class Aw>
concept HasMustResume = requires(const Aw& awaiter) { awaiter.await_must_resume(); };
template <class Aw>
concept HasSetExecutor =
    requires(Aw& awaiter, Executor* executor) { awaiter.await_set_executor(executor); };

template <class Aw>
consteval auto early_cancel_type() {
  if constexpr (HasEarlyCancel<Aw>) {
    return std::type_identity<decltype(std::declval<Aw&>().await_early_cancel())>{};
  } else {
    return std::type_identity<std::true_type>{};
  }
}
template <class Aw>
consteval auto cancel_type() {
  if constexpr (HasCancel<Aw>) {
    return std::type_identity<decltype(std::declval<Aw&>().await_cancel(
        std::declval<HandleFor<Aw>>()))>{};
  } else {
    return std::type_identity<std::false_type>{};
  }
}
template <class Aw>
consteval auto must_resume_type() {
  if constexpr (HasMustResume<Aw>) {
    return std::type_identity<decltype(std::declval<const Aw&>().await_must_resume())>{};
  } else {
    return std::type_identity<std::true_type>{};  // no hook to say otherwise: what was produced is
                                                  // delivered
  }
}

template <class Aw>
using EarlyCancelType = typename decltype(early_cancel_type<std::remove_reference_t<Aw>>())::type;
template <class Aw>
using CancelType = typename decltype(cancel_type<std::remove_reference_t<Aw>>())::type;
template <class Aw>
using MustResumeType = typename decltype(must_resume_type<std::remove_reference_t<Aw>>())::type;

template <class Aw>
inline constexpr bool kSkippable = std::same_as<EarlyCancelType<Aw>, std::true_type>;
template <class Aw>
inline constexpr bool kAbortable = std::same_as<CancelType<Aw>, std::true_type>;

}  // namespace detail

// A cancel before the start always succeeds: the operation is never begun.
template <class A>
concept Skippable = Awaitable<A> && detail::kSkippable<detail::AwaiterOf<A>>;
// A cancel while it runs always succeeds at once.
template <class A>
concept Abortable = Awaitable<A> && detail::kAbortable<detail::AwaiterOf<A>>;
// May have a result although it was cancelled.
template <class A>
concept MayResumeAfterCancel =
    Awaitable<A> && !std::same_as<detail::MustResumeType<detail::AwaiterOf<A>>, std::false_type>;

namespace detail {

template <class Aw>
concept NamesCancel = requires { &Aw::await_cancel; };
template <class Aw>
concept NamesEarlyCancel = requires { &Aw::await_early_cancel; };
template <class Aw>
concept NamesMustResume =
    requires { &Aw::await_must_resume; } || requires(Aw& awaiter) { awaiter.await_must_resume(); };
template <class Aw>
concept NamesSetExecutor = requires { &Aw::await_set_executor; };
template <class Aw>
concept Misspelt = requires { &Aw::await_canceled; } || requires { &Aw::await_cancelled; } ||
                   requires { &Aw::await_earlycancel; } || requires { &Aw::await_cancel_early; } ||
                   requires { &Aw::await_mustresume; } || requires { &Aw::await_should_resume; } ||
                   requires { &Aw::await_early_cancelled; };
template <class T>
concept BoolLike =
    std::same_as<T, bool> || std::same_as<T, std::true_type> || std::same_as<T, std::false_type>;

// Said once per awaiter type, where it is awaited.
template <class Ref>
consteval bool check_hooks() {
  using Aw = std::remove_reference_t<Ref>;
  static_assert(!Misspelt<Aw>,
                "weft: a hook of this awaiter is misspelt; the names are await_early_cancel, "
                "await_cancel and "
                "await_must_resume");
  static_assert(HasCancel<Aw> || !NamesCancel<Aw>,
                "weft: await_cancel must be callable with a std::coroutine_handle<>");
  static_assert(HasEarlyCancel<Aw> || !NamesEarlyCancel<Aw>,
                "weft: await_early_cancel takes no arguments");
  static_assert(HasMustResume<Aw> || !NamesMustResume<Aw>,
                "weft: await_must_resume takes no arguments and must be const");
  static_assert(HasSetExecutor<Aw> || !NamesSetExecutor<Aw>,
                "weft: await_set_executor must be callable with a weft::Executor*");
  static_assert(BoolLike<EarlyCancelType<Aw>>,
                "weft: await_early_cancel returns bool, std::true_type or std::false_type");
  static_assert(BoolLike<CancelType<Aw>>,
                "weft: await_cancel returns bool, std::true_type or std::false_type");
  static_assert(BoolLike<MustResumeType<Aw>>,
                "weft: await_must_resume returns bool, std::true_type or std::false_type");
  constexpr bool may_end_late = (HasCancel<Aw> && !kAbortable<Aw>) || !kSkippable<Aw>;
  static_assert(
      !may_end_late || HasMustResume<Aw>,
      "weft: this awaiter may answer a cancel later (await_cancel or await_early_cancel is not "
      "std::true_type), so it needs await_must_resume to say whether there is a result");
  constexpr bool never_late = kSkippable<Aw> && kAbortable<Aw>;
  static_assert(
      !never_late || !HasMustResume<Aw> || std::same_as<MustResumeType<Aw>, std::false_type>,
      "weft: every cancel of this awaiter succeeds at once, so await_must_resume can only return "
      "std::false_type (or be absent)");
  return true;
}

// --- Calling them -------------------------------------------------------------------------------

template <class Aw>
bool call_early_cancel(Aw& awaiter) noexcept {
  if constexpr (!HasEarlyCancel<Aw>) {
    return true;
  } else if constexpr (kSkippable<Aw>) {
    awaiter.await_early_cancel();
    return true;
  } else {
    return awaiter.await_early_cancel();
  }
}
template <class Aw>
bool call_cancel(Aw& awaiter, HandleFor<Aw> handle) noexcept {
  if constexpr (!HasCancel<Aw>) {
    return false;
  } else if constexpr (kAbortable<Aw>) {
    awaiter.await_cancel(handle);
    return true;
  } else {
    return awaiter.await_cancel(handle);
  }
}
template <class Aw>
bool call_must_resume(const Aw& awaiter) noexcept {
  if constexpr (HasMustResume<Aw>) {
    return awaiter.await_must_resume();
  } else {
    return true;
  }
}

}  // namespace detail

}  // namespace weft::inline v0
