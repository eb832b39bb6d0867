// SPDX-License-Identifier: MIT
#pragma once
// weft::try_(body).catch_(handler).finally(cleanup): try and catch whose handlers can await.
//
//     co_await try_([&]() -> Task<> { co_await work(); })
//                  .catch_([&](const IoError& e) -> Task<> { co_await report(e); })
//                  .finally([&]() -> Task<> { co_await close(); });
//
// Handlers are tried in order, each by the type of its parameter; std::exception_ptr takes any.
// The caught exception lives until the handler has ended. Every part is kept alive to the end.
//
// Cancellation   reaches the body or the handler that runs. It is no exception: no handler sees it,
//                but cleanup runs on value, exception and cancellation alike, shielded.
// Errors         a handler's or cleanup's own exception replaces the one before, which is then among
//                other_errors().
// Allocation     none beyond the parts' own frames.
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/core/branch.h"
#include "weft/core/combinator.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

namespace detail {

template <class Member>
struct ParameterOf;
template <class C, class R, class P>
struct ParameterOf<R (C::*)(P) const> {
  using type = P;
};
template <class C, class R, class P>
struct ParameterOf<R (C::*)(P)> {
  using type = P;
};
template <class H>
using Caught = typename ParameterOf<decltype(&H::operator())>::type;

// One handler and, once it runs, its awaitable.
template <class H>
struct Handler {
  using Made = std::invoke_result_t<H&, Caught<H>>;
  static_assert(Awaitable<Made>, "weft: a handler given to catch_() must return an awaitable");

  explicit Handler(H&& given) : fn(std::move(given)) {}

  // Returns: true if the exception was for this handler, which then has a branch or threw.
  bool take(const std::exception_ptr& error) {
    if constexpr (std::same_as<std::remove_cvref_t<Caught<H>>, std::exception_ptr>) {
      branch.emplace([&]() -> Made { return std::invoke(fn, error); });
      return true;
    } else {
      using E = std::remove_cvref_t<Caught<H>>;
      E* caught = nullptr;
      try {
        std::rethrow_exception(error);
      } catch (E& matching) {
        caught = &matching;  // lives as long as `error` holds it
      } catch (...) {
        return false;
      }
      branch.emplace([&]() -> Made { return std::invoke(fn, *caught); });
      return true;
    }
  }

  H fn;
  LaterBranch<Made> branch;
};

struct NoCleanup {};

template <class C>
struct CleanupPart {
  using Made = std::invoke_result_t<C&>;
  explicit CleanupPart(C&& given) : fn(std::move(given)) {}
  bool make() {
    branch.emplace([&]() -> Made { return std::invoke(fn); });
    return true;
  }
  C fn;
  LaterBranch<Made> branch;
};
template <>
struct CleanupPart<NoCleanup> {
  explicit CleanupPart(NoCleanup&&) {}
};

template <class B, class C, class... H>
class TryAwaiter final : private BranchOwner {
  using Made = std::invoke_result_t<B&>;
  using Result = typename Branch<Made>::Result;
  static constexpr bool kHasCleanup = !std::same_as<C, NoCleanup>;

 public:
  using native_awaiter = void;
  TryAwaiter(B&& body, C&& cleanup, std::tuple<H...>&& handlers)
      : TryAwaiter(std::move(body), std::move(cleanup), std::move(handlers),
                   std::index_sequence_for<H...>()) {}

  static constexpr bool await_ready() noexcept { return false; }
  // The body is entered although it is cancelled, and cleanup runs in any case.
  std::false_type await_early_cancel() noexcept {
    cancelled_ = true;
    return {};
  }
  bool await_suspend(Continuation waiter) noexcept {
    waiter_ = waiter;
    return !begin_body() || gives_up();
  }
  bool await_cancel(Continuation) noexcept {
    if (gave_up_) return true;
    cancelled_ = true;
    if (!running_ || stage_ == Stage::cleanup || !running_->cancel() || !next()) return false;
    if (!await_must_resume()) return true;
    waiter_.wake();
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept { return error_ || result_.has_value(); }
  Result await_resume() {
    if (error_) error_.rethrow();
    if (!result_) throw TaskCancelled(unasked_ ? *unasked_ : reasons::requested);
    if constexpr (std::is_reference_v<Result>) {
      return static_cast<Result>(**result_);
    } else if constexpr (!std::is_void_v<Result>) {
      return std::move(*result_);
    }
  }
  void await_introspect(auto& tree) noexcept {
    constexpr const char* kNames[] = {"try", "catch", "finally"};
    tree.node(kNames[static_cast<int>(stage_)]);
    if (stage_ == Stage::body && body_branch_) tree.child(body_branch_->awaiter());
  }

 private:
  enum class Stage : std::uint8_t { body, handler, cleanup };

  template <std::size_t... I>
  TryAwaiter(B&& body, C&& cleanup, std::tuple<H...>&& handlers, std::index_sequence<I...>)
      : body_(std::move(body)),
        cleanup_(std::move(cleanup)),
        handlers_(std::move(std::get<I>(handlers))...) {}

  // Each returns true if that was the end of it all.
  bool begin_body() noexcept {
    try {
      body_branch_.emplace([&]() -> Made { return std::invoke(body_); });
    } catch (...) {
      return failed(CaughtError::current());
    }
    return begin(*body_branch_, cancelled_) && next();
  }
  bool begin(BranchBase& branch, bool cancelled) noexcept {
    running_ = &branch;
    return branch.start(*this, cancelled);
  }

  // The running part is over.
  bool next() noexcept {
    BranchBase& ended = *std::exchange(running_, nullptr);
    if (ended.unasked()) unasked_ = ended.unasked();
    if (stage_ == Stage::cleanup) {
      if constexpr (kHasCleanup) {
        try {
          static_cast<void>(cleanup_.branch->take());
        } catch (...) {
          replace_error(CaughtError::current());
        }
      }
      return true;
    }
    if (!ended.has_result()) {
      error_ = {};  // a handler that was cancelled has the exception no more (L3)
      return begin_cleanup();
    }
    try {
      collect();
    } catch (...) {
      return failed(CaughtError::current());
    }
    error_ = {};
    return begin_cleanup();
  }

  void collect() {
    if (stage_ == Stage::body) {
      result_.emplace(store<Result>([&]() -> decltype(auto) { return body_branch_->take(); }));
      return;
    }
    std::apply([&](auto&... handler) { (collect_from(handler), ...); }, handlers_);
  }
  template <class Part>
  void collect_from(Part& handler) {
    if (!handler.branch) return;
    result_.emplace(store<Result>([&]() -> decltype(auto) { return handler.branch->take(); }));
  }

  bool failed(CaughtError error) noexcept {
    if (stage_ == Stage::handler) {
      replace_error(std::move(error));
      return begin_cleanup();
    }
    error_ = std::move(error);
    stage_ = Stage::handler;
    try {
      BranchBase* handling = nullptr;
      std::apply([&](auto&... handler) { (try_handler(handler, handling), ...); }, handlers_);
      if (handling) return begin(*handling, cancelled_) && next();
    } catch (...) {
      replace_error(CaughtError::current());
    }
    return begin_cleanup();
  }
  template <class Part>
  void try_handler(Part& handler, BranchBase*& handling) {
    if (!handling && handler.take(error_.first())) handling = &*handler.branch;
  }

  bool begin_cleanup() noexcept {
    stage_ = Stage::cleanup;
    if constexpr (kHasCleanup) {
      try {
        cleanup_.make();
      } catch (...) {
        replace_error(CaughtError::current());
        return true;
      }
      return begin(*cleanup_.branch, false) && next();
    } else {
      return true;
    }
  }

  void replace_error(CaughtError error) noexcept {
    if (error_.first() == error.first()) return;  // rethrown
    error.add(error_);
    error_ = std::move(error);
  }

  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }
  [[nodiscard]] Strand* needing() const noexcept override { return waiter_.needing(); }
  void over(BranchBase&) noexcept override {
    if (next() && !gives_up()) waiter_.wake();
  }
  // A part ended cancelled, and nobody here had asked. Returns: true if the waiter goes the same way.
  bool gives_up() noexcept {
    if (await_must_resume() || cancelled_ || !unasked_) return false;
    gave_up_ = true;
    return waiter_.cancel_with(*unasked_);
  }

  B body_;
  CleanupPart<C> cleanup_;
  std::tuple<Handler<H>...> handlers_;
  LaterBranch<Made> body_branch_;
  BranchBase* running_ = nullptr;
  std::optional<Storable<Result>> result_;
  CaughtError error_;
  const CancelReason* unasked_ = nullptr;
  Continuation waiter_;
  Stage stage_ = Stage::body;
  bool cancelled_ = false;
  bool gave_up_ = false;
};

template <class B, class C, class... H>
class Try {
 public:
  Try(B&& body, C&& cleanup, std::tuple<H...>&& handlers)
      : body_(std::move(body)), cleanup_(std::move(cleanup)), handlers_(std::move(handlers)) {}

  template <class Fn>
  [[nodiscard]] auto catch_(Fn&& handler) && {
    static_assert(std::same_as<C, NoCleanup>, "weft: finally() comes last");
    check_callable<Fn>();
    return Try<B, C, H..., std::decay_t<Fn>>(
        std::move(body_), std::move(cleanup_),
        std::tuple_cat(std::move(handlers_),
                       std::tuple<std::decay_t<Fn>>(std::forward<Fn>(handler))));
  }
  template <class Fn>
  [[nodiscard]] auto finally(Fn&& cleanup) && {
    static_assert(std::same_as<C, NoCleanup>, "weft: one finally() is enough");
    check_callable<Fn>();
    return Try<B, std::decay_t<Fn>, H...>(
        std::move(body_), std::decay_t<Fn>(std::forward<Fn>(cleanup)), std::move(handlers_));
  }

  TryAwaiter<B, C, H...> operator co_await() && {
    return TryAwaiter<B, C, H...>(std::move(body_), std::move(cleanup_), std::move(handlers_));
  }

 private:
  B body_;
  C cleanup_;
  std::tuple<H...> handlers_;
};

}  // namespace detail

template <AwaitableCallable B>
[[nodiscard]] auto try_(B&& body) {
  detail::check_callable<B>();
  return detail::Try<std::decay_t<B>, detail::NoCleanup>(std::decay_t<B>(std::forward<B>(body)), {},
                                                         {});
}

}  // namespace weft::inline v0
