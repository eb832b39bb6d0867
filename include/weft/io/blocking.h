// SPDX-License-Identifier: MIT
#pragma once
// weft::blocking(fn): runs fn on a thread that may block, and comes back here with its result.
//
//     auto text = co_await blocking([path] { return read_whole_file(path); });
//     auto sum = co_await blocking([&](StopToken stop) { return crunch(data, stop); });
//
// For work that cannot be awaited: a C library's calls, getaddrinfo(), long computation. Threads are
// those of a BlockingPool: the IOContext's, or, on any other loop, one that the process shares. They
// start when needed and end when idle.
//
// Threads        await it on any loop. fn runs on another thread, while the awaiting frame stands
//                still: it may refer to the frame's locals.
// Cancellation   work that is queued is withdrawn, and never runs. Work that runs sees its StopToken
//                stopped, and is waited for (L12); what it returns or throws is delivered, and the
//                cancellation strikes at the next co_await.
// Errors         what fn throws. UsageError if the pool's queue is full (queue_max).
// Resumption     on the waiter's home loop.
// Allocation     none: the work lies in the awaiting frame. The pool's threads are threads.
#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/core/invoked.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/scope.h"
#include "weft/core/task.h"
#include "weft/io/blocking_job.h"

namespace weft::inline v0 {

class BlockingPool {
 public:
  struct Options {
    unsigned threads_max = 64;                                 // at one time
    std::size_t queue_max = 1 << 20;                           // jobs that wait for a thread
    std::chrono::milliseconds idle = std::chrono::seconds(5);  // a thread without work ends after
  };
  struct Statistics {
    unsigned threads = 0;
    unsigned idle = 0;
    std::size_t queued = 0;
    std::uint64_t done = 0;
  };

  BlockingPool() : BlockingPool(Options()) {}
  explicit BlockingPool(Options options);
  // Requires: no work is queued or runs. Waits for the threads.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // The current loop's, or the process's.
  [[nodiscard]] static BlockingPool& current();
  [[nodiscard]] Statistics statistics() const;

  // For weft's own use. submit(): UsageError if the queue is full, std::system_error if there is no
  // thread and none can be made; then the job was not taken. withdraw(): true: it will not run.
  void submit(detail::BlockingJob& job);
  [[nodiscard]] bool withdraw(detail::BlockingJob& job) noexcept;

 private:
  class Threads;
  std::unique_ptr<Threads> threads_;
};

namespace detail {

// Which of the two forms fn has, and what it returns.
template <class Fn>
struct BlockingCall {
  static constexpr bool kTakesToken = std::invocable<Fn&, StopToken>;
  static_assert(kTakesToken || std::invocable<Fn&>,
                "weft: blocking() takes a function of no argument, or of one StopToken");
  static decltype(auto) call(Fn& fn, StopToken token) {
    if constexpr (kTakesToken) {
      return std::invoke(fn, token);
    } else {
      return std::invoke(fn);
    }
  }
  using Result = decltype(call(std::declval<Fn&>(), std::declval<StopToken>()));
  static_assert(!kIsTask<std::remove_cvref_t<Result>>,
                "weft: blocking() runs plain functions; await a Task, or on(loop, task)");
};

template <class Fn>
class BlockingAwaiter final : private BlockingJob {
  using Call = BlockingCall<std::remove_reference_t<Fn>>;
  using T = typename Call::Result;

 public:
  using native_awaiter = void;
  explicit BlockingAwaiter(Fn&& fn) : fn_(std::forward<Fn>(fn)) {}

  static constexpr bool await_ready() noexcept { return false; }
  void await_suspend(Continuation waiter) {
    waiter_ = waiter;
    work = [](BlockingJob& job) noexcept { static_cast<BlockingAwaiter&>(job).run_there(); };
    done = [](BlockingJob& job) noexcept { static_cast<BlockingAwaiter&>(job).waiter_.wake(); };
    pool_ = &BlockingPool::current();
    home = Executor::current("blocking()").home();
    pool_->submit(*this);
  }
  bool await_cancel(Continuation) noexcept {
    if (pool_->withdraw(*this)) return true;
    static_cast<void>(stop_.request_cancel());  // it has no home: nobody is owed a kick
    return false;
  }
  // It ran: what it made is delivered (L5).
  static constexpr std::true_type await_must_resume() noexcept { return {}; }
  T await_resume() {
    if (error_) std::rethrow_exception(std::move(error_));
    return give<T>(*result_);
  }
  static void await_introspect(auto& tree) noexcept { tree.node("blocking"); }

 private:
  void run_there() noexcept {
    try {
      if constexpr (std::is_void_v<T>) {
        Call::call(fn_, StopToken(stop_));
        result_.emplace();
      } else if constexpr (std::is_reference_v<T>) {
        T made = Call::call(fn_, StopToken(stop_));
        result_.emplace(std::addressof(made));
      } else {
        result_.emplace(Call::call(fn_, StopToken(stop_)));
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  Fn fn_;
  BlockingPool* pool_ = nullptr;
  CancellationState stop_;
  Continuation waiter_;
  std::optional<Kept<T>> result_;
  std::exception_ptr error_;
};

template <class Fn>
class Blocking {
 public:
  explicit Blocking(Fn&& fn) : fn_(std::forward<Fn>(fn)) {}
  BlockingAwaiter<Fn> operator co_await() && { return BlockingAwaiter<Fn>(std::forward<Fn>(fn_)); }

 private:
  Fn fn_;
};

}  // namespace detail

template <class Fn>
[[nodiscard]] auto blocking(Fn&& fn) {
  detail::check_callable<Fn>();
  using Kept = detail::KeptFunction<Fn>;
  return detail::Blocking<Kept>(static_cast<Kept>(std::forward<Fn>(fn)));
}

}  // namespace weft::inline v0
