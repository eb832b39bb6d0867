// SPDX-License-Identifier: MIT
#pragma once
// weft::until_callback: waits for a function of another library to call back.
//
//     int n = co_await until_callback<void(int)>([&](auto done) { legacy_read(fd, buf, done); });
//     auto r = co_await until_callback<void(int), void(std::error_code)>(
//         [&](auto ok, auto failed) { legacy(fd, ok, failed); });          // a variant, by index
//     co_await until_callback<void(int)>(start, [&] { legacy_cancel(fd); });  // can be cancelled
//
// The initiator is given one callback per signature. The first call of any of them ends the wait
// and carries its arguments; it may come at once, from inside the initiator, or later on any thread.
// Callbacks are copyable. A second call is refused with a message.
//
// Result         one argument: itself; none: void; several: a tuple. For several signatures a
//                std::variant of std::tuple, by index.
// Cancellation   with a cancel function, a cancel point: after that function has returned no
//                callback may be called any more, unless one was called inside it (or meanwhile, on
//                another thread), and then its result is delivered. A library that cannot promise
//                that says so by a cancel function that returns bool: false, and the wait lasts until
//                a callback comes. Without a cancel function it always does (L4).
// Errors         an argument that throws when it is stored ends the wait with that exception.
// Lifetime       the functions are moved or copied into the description. (A named one that cannot be
//                copied is referred to, and must outlive the wait.)
// Allocation     none; a callback is one pointer.
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/assert.h"
#include "weft/core/continuation.h"
#include "weft/core/executor.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

namespace detail {

// Brings a waiter home from whatever thread the callback comes on.
class CallbackPost : private Runnable {
 public:
  CallbackPost() noexcept : Runnable(&arrived) {}
  CallbackPost(const CallbackPost&) = delete;
  CallbackPost& operator=(const CallbackPost&) = delete;

 protected:
  ~CallbackPost() = default;

  void begin(Continuation waiter);
  // Any thread. Returns: true for the first call.
  bool claim() noexcept { return !called_.exchange(true, acq_rel); }
  // Any thread, after claim() and after the arguments are in place.
  void send() noexcept;
  [[nodiscard]] bool was_called() const noexcept { return called_.load(acquire); }

 private:
  static void arrived(Runnable& work) noexcept;

  Atomic<bool> called_{false};
  HomeIndex home_ = 0;
  Continuation waiter_;
};

template <class Signature>
struct CallbackArgs;
template <class... Args>
struct CallbackArgs<void(Args...)> {
  using type = std::tuple<std::decay_t<Args>...>;
};

struct NoCancel {};

template <class Init, class Cancel, class... Signatures>
class CallbackAwaiter final : private CallbackPost {
  using Results = std::variant<typename CallbackArgs<Signatures>::type...>;

 public:
  using native_awaiter = void;

  template <std::size_t I, class Signature>
  class Callback;
  template <std::size_t I, class... Args>
  class Callback<I, void(Args...)> {
   public:
    explicit Callback(CallbackAwaiter& of) noexcept : awaiter_(&of) {}
    void operator()(Args... args) const {
      awaiter_->template called<I>(std::forward<Args>(args)...);
    }

   private:
    CallbackAwaiter* awaiter_;
  };

  CallbackAwaiter(Init&& init, Cancel&& cancel)
      : init_(std::forward<Init>(init)), cancel_(std::forward<Cancel>(cancel)) {}

  static constexpr bool await_ready() noexcept { return false; }
  void await_suspend(Continuation waiter) {
    begin(waiter);
    call_init(std::index_sequence_for<Signatures...>());
  }
  bool await_cancel(Continuation) noexcept {
    if constexpr (std::same_as<Cancel, NoCancel>) {
      return false;
    } else {
      if (was_called()) return false;
      if constexpr (std::same_as<std::invoke_result_t<Cancel&>, bool>) {
        if (!std::invoke(cancel_)) return false;
      } else {
        std::invoke(cancel_);
      }
      return claim();  // false: a callback came first, and its result is on its way
    }
  }
  static constexpr std::true_type await_must_resume() noexcept { return {}; }
  auto await_resume() {
    if (error_) std::rethrow_exception(error_);
    if constexpr (sizeof...(Signatures) > 1) {
      return std::move(*result_);
    } else {
      using Args = std::variant_alternative_t<0, Results>;
      auto& args = std::get<0>(*result_);
      if constexpr (std::tuple_size_v<Args> == 0) {
        return;
      } else if constexpr (std::tuple_size_v<Args> == 1) {
        return std::move(std::get<0>(args));
      } else {
        return std::move(args);
      }
    }
  }
  static void await_introspect(auto& tree) noexcept { tree.node("callback"); }

 private:
  template <std::size_t... I>
  void call_init(std::index_sequence<I...>) {
    std::invoke(init_, Callback<I, Signatures>(*this)...);
  }
  template <std::size_t I, class... Args>
  void called(Args&&... args) {
    WEFT_ASSERT(claim(), "L6: of the callbacks of one until_callback(), one is called, once");
    // The wait is claimed, so it is ended in any case.
    try {
      result_.emplace(std::in_place_index<I>, std::forward<Args>(args)...);
    } catch (...) {
      error_ = std::current_exception();
    }
    send();
  }

  Init init_;
  Cancel cancel_;
  std::optional<Results> result_;
  std::exception_ptr error_;
};

template <class Init, class Cancel, class... Signatures>
class UntilCallback {
 public:
  UntilCallback(Init&& init, Cancel&& cancel)
      : init_(std::forward<Init>(init)), cancel_(std::forward<Cancel>(cancel)) {}
  CallbackAwaiter<Init, Cancel, Signatures...> operator co_await() && {
    return CallbackAwaiter<Init, Cancel, Signatures...>(std::forward<Init>(init_),
                                                        std::forward<Cancel>(cancel_));
  }

 private:
  Init init_;
  Cancel cancel_;
};

}  // namespace detail

// Requires: if init throws, no callback is called.
template <class... Signatures, class Init>
  requires(sizeof...(Signatures) > 0)
[[nodiscard]] auto until_callback(Init&& init) {
  detail::check_callable<Init>();
  using Kept = detail::KeptFunction<Init>;
  return detail::UntilCallback<Kept, detail::NoCancel, Signatures...>(
      static_cast<Kept>(std::forward<Init>(init)), {});
}
template <class... Signatures, class Init, std::invocable Cancel>
  requires(sizeof...(Signatures) > 0)
[[nodiscard]] auto until_callback(Init&& init, Cancel&& cancel) {
  detail::check_callable<Init>();
  detail::check_callable<Cancel>();
  using Kept = detail::KeptFunction<Init>;
  using KeptCancel = detail::KeptFunction<Cancel>;
  return detail::UntilCallback<Kept, KeptCancel, Signatures...>(
      static_cast<Kept>(std::forward<Init>(init)),
      static_cast<KeptCancel>(std::forward<Cancel>(cancel)));
}

// Without arguments no signature is needed.
template <class Init>
[[nodiscard]] auto until_callback(Init&& init) {
  return until_callback<void()>(std::forward<Init>(init));
}
template <class Init, std::invocable Cancel>
[[nodiscard]] auto until_callback(Init&& init, Cancel&& cancel) {
  return until_callback<void()>(std::forward<Init>(init), std::forward<Cancel>(cancel));
}

}  // namespace weft::inline v0
