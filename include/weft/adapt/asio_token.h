// SPDX-License-Identifier: MIT
#pragma once
// weft::use_weft: Asio's asynchronous operations as awaitables of weft.
//
//     Result<std::size_t> n = co_await socket.async_read_some(buffer, use_weft);
//     auto [error, n] = co_await async_read(socket, buffer, use_weft_tuple);
//
// Works in a task on any loop of weft's, with the operation's io_context run by the same thread
// (asio_loop.h) or by another.
//
// Result         use_weft: for a handler void(error_code, T…), Result<T>, with void for no T and a
//                tuple for several; the error is a std::error_code, and is compared with Asio's own
//                by naming the type: `n.error() == error_code(asio::error::eof)`. For
//                void(exception_ptr, T…) the exception is thrown; any other handler's arguments are
//                the result.
//                use_weft_tuple: the arguments as they come. For operations that do a part of their
//                work and then fail: async_read() up to the end of a stream.
// Threads        Asio's rule for the object stands: it is not used by two threads at once. So the
//                executor of the object is a strand, or its context is run by one thread.
// Cancellation   a cancel point. The request is sent to the operation's executor and emitted there,
//                and the wait lasts until the operation has answered: operation_aborted, and the
//                wait ends cancelled; anything else is delivered (L5), also what an operation has
//                done in part (async_write() of 10 bytes out of 20: the value is 10), and
//                cancellation strikes at the next co_await. An operation that names no executor (its
//                initiation has no get_executor()) or heeds no slot is not cut short. The context
//                must run, or nothing ends.
// Resumption     on the waiter's home loop, never inside of Asio's handler.
// Errors         an operation whose context is destroyed ends with operation_aborted.
// Allocation     none but Asio's own.
//
// Invariants
//   I1  owed_ counts who will still touch the awaiter: the handler, and the request under way. Whoever
//       takes it to zero sends the waiter home (L6).
//   I2  a request is emitted only while the handler has not come, and on the operation's executor.
#include <cstddef>
#include <exception>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/adapt/asio_names.h"
#include "weft/base/result.h"
#include "weft/core/callback.h"

namespace weft::inline v0 {

template <bool AsTuple>
struct UseWeft {
  constexpr UseWeft() noexcept {}
};
inline constexpr UseWeft<false> use_weft;
inline constexpr UseWeft<true> use_weft_tuple;

namespace detail {

template <class Init>
concept NamesExecutor = requires(const Init& init) {
  typename Init::executor_type;
  init.get_executor();
};
template <class Init>
struct ExecutorOfInit {
  using type = std::monostate;
};
template <NamesExecutor Init>
struct ExecutorOfInit<Init> {
  using type = typename Init::executor_type;
};

// void(Args...): what a handler is called with, and what the wait returns.
template <class Signature>
struct AsioArgs;
template <class... Args>
struct AsioArgs<void(Args...)> {
  using Values = std::tuple<std::decay_t<Args>...>;
};

// Of a tuple from index I on: nothing, the one value, or a tuple.
template <std::size_t From, class... T>
auto asio_rest(std::tuple<T...>& values) {
  constexpr std::size_t kCount = sizeof...(T) - From;
  if constexpr (kCount == 1) {
    return std::move(std::get<From>(values));
  } else if constexpr (kCount > 1) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple(std::move(std::get<From + I>(values))...);
    }(std::make_index_sequence<kCount>());
  }
}

template <bool AsTuple, class Signature, class Init, class... Args>
class AsioAwaiter final : private CallbackPost {
  using Values = typename AsioArgs<Signature>::Values;
  using Executor = typename ExecutorOfInit<Init>::type;

  static constexpr std::size_t kCount = std::tuple_size_v<Values>;
  template <class T>
  static consteval bool first_is() {
    if constexpr (kCount == 0) {
      return false;
    } else {
      return std::is_same_v<std::tuple_element_t<0, Values>, T>;
    }
  }
  static constexpr bool kHasError = first_is<AsioError>();
  static constexpr bool kHasException = first_is<std::exception_ptr>();

 public:
  using native_awaiter = void;

  AsioAwaiter(Init&& init, std::tuple<Args...>&& args)
      : init_(std::move(init)), args_(std::move(args)) {}

  static constexpr bool await_ready() noexcept { return false; }
  void await_suspend(Continuation waiter) {
    begin(waiter);
    if constexpr (NamesExecutor<Init>) executor_.emplace(init_.get_executor());
    starting_ = true;
    std::apply([&](Args&... args) { std::move(init_)(Handler(*this), std::move(args)...); }, args_);
    starting_ = false;
    if (dropped_) answered();
  }
  bool await_cancel(Continuation) noexcept {
    if constexpr (NamesExecutor<Init>) {
      unsigned handler_only = 1;
      // acquire: what the handler stored, if it came first. [pairs with A]
      if (!owed_.compare_exchange_strong(handler_only, 2, acq_rel, acquire)) return false;
      asked_ = true;
      try {
        asio_lib::dispatch(*executor_, Request(*this));
      } catch (
          ...) {  // no memory to ask with: then it is waited for (Request has taken itself off)
      }
    }
    return false;
  }
  [[nodiscard]] bool await_must_resume() const noexcept { return !asked_ || !was_aborted(); }

  auto await_resume() {
    if (thrown_) std::rethrow_exception(thrown_);
    if constexpr (AsTuple) {
      return std::move(*values_);
    } else if constexpr (kHasError) {
      using Rest = decltype(asio_rest<1>(*values_));
      AsioError error = std::get<0>(*values_);
      bool in_part = asked_ && error == aborted();  // was_aborted() is false, so there is progress
      if (error && !in_part) return Result<Rest>(std::unexpected(std::error_code(error)));
      if constexpr (std::is_void_v<Rest>) {
        return Result<Rest>();
      } else {
        return Result<Rest>(asio_rest<1>(*values_));
      }
    } else if constexpr (kHasException) {
      if (std::get<0>(*values_)) std::rethrow_exception(std::get<0>(*values_));
      return asio_rest<1>(*values_);
    } else {
      return asio_rest<0>(*values_);
    }
  }
  static void await_introspect(auto& tree) noexcept { tree.node("asio operation"); }

 private:
  // What Asio keeps and calls. It may also drop it: the context is destroyed.
  class Handler {
   public:
    using cancellation_slot_type = asio_lib::cancellation_slot;

    explicit Handler(AsioAwaiter& of) noexcept : awaiter_(&of) {}
    Handler(Handler&& other) noexcept : awaiter_(std::exchange(other.awaiter_, nullptr)) {}
    Handler& operator=(Handler&&) = delete;
    ~Handler() {
      if (awaiter_) awaiter_->dropped();
    }
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
      return awaiter_ ? awaiter_->signal_.slot() : cancellation_slot_type();
    }
    template <class... Given>
    void operator()(Given&&... given) {
      std::exchange(awaiter_, nullptr)->completed(std::forward<Given>(given)...);
    }

   private:
    AsioAwaiter* awaiter_;
  };

  // The request to stop, under way to the operation's executor.
  class Request {
   public:
    explicit Request(AsioAwaiter& of) noexcept : awaiter_(&of) {}
    Request(Request&& other) noexcept : awaiter_(std::exchange(other.awaiter_, nullptr)) {}
    Request& operator=(Request&&) = delete;
    ~Request() {
      if (awaiter_) awaiter_->answered();
    }
    void operator()() {
      // I2. acquire: for the awaiter as its home left it, though the executor orders that too.
      if (awaiter_->owed_.load(acquire) == 2) {
        awaiter_->signal_.emit(asio_lib::cancellation_type::all);
      }
    }

   private:
    AsioAwaiter* awaiter_;
  };

  static AsioError aborted() noexcept { return asio_lib::error::operation_aborted; }
  [[nodiscard]] bool was_aborted() const noexcept {
    if (thrown_ || !values_) return false;
    if constexpr (kHasError) {
      if (std::get<0>(*values_) != aborted()) return false;
      if constexpr (kCount == 2) {
        using Second = std::tuple_element_t<1, Values>;
        if constexpr (std::is_integral_v<Second>) return std::get<1>(*values_) == 0;
      }
      return true;
    }
    return false;
  }

  template <class... Given>
  void completed(Given&&... given) noexcept {
    try {
      values_.emplace(std::forward<Given>(given)...);
    } catch (...) {
      thrown_ = std::current_exception();
    }
    answered();
  }
  void dropped() noexcept {
    if constexpr (kHasError && std::is_default_constructible_v<Values>) {
      values_.emplace();
      std::get<0>(*values_) = aborted();
    } else {
      thrown_ = std::make_exception_ptr(std::system_error(std::error_code(aborted())));
    }
    // Inside the start it is for that to say: if it throws, there is no wait.
    if (starting_) {
      dropped_ = true;
    } else {
      answered();
    }
  }
  void answered() noexcept {
    // release: publishes what the handler stored; acquire: the last one sends for both. [A]
    if (owed_.fetch_sub(1, acq_rel) == 1) send();
  }

  Init init_;
  std::tuple<Args...> args_;
  std::optional<Executor> executor_;
  asio_lib::cancellation_signal signal_;
  std::optional<Values> values_;
  std::exception_ptr thrown_;
  Atomic<unsigned> owed_{1};  // I1
  bool asked_ = false;
  bool starting_ = false;
  bool dropped_ = false;
};

template <bool AsTuple, class Signature, class Init, class... Args>
class [[nodiscard]] AsioOperation {
 public:
  template <class... Given>
  explicit AsioOperation(Init&& init, Given&&... given)
      : init_(std::move(init)), args_(std::forward<Given>(given)...) {}
  auto operator co_await() && {
    return AsioAwaiter<AsTuple, Signature, Init, Args...>(std::move(init_), std::move(args_));
  }

 private:
  Init init_;
  std::tuple<Args...> args_;
};

}  // namespace detail

}  // namespace weft::inline v0

template <bool AsTuple, class Signature>
class weft::detail::asio_lib::async_result<weft::UseWeft<AsTuple>, Signature> {
 public:
  template <class Init, class... Args>
  static auto initiate(Init&& init, weft::UseWeft<AsTuple>, Args&&... args) {
    using Kept = std::decay_t<Init>;
    return weft::detail::AsioOperation<AsTuple, Signature, Kept, std::decay_t<Args>...>(
        Kept(std::forward<Init>(init)), std::forward<Args>(args)...);
  }
};
