// SPDX-License-Identifier: MIT
#pragma once
// weft on Asio's io_context: tasks run in its callbacks, and sleep by its timers.
//
//     boost::asio::io_context context;
//     int result = weft::run(context, async_main());
//
// The task runs beside whatever else the context does. run() keeps the context busy until the task
// has ended, then returns and leaves everything else in the context for later.
//
// Threads        one thread runs the context while run() is under way, the one that called it; a
//                second one is refused. Other threads may post to the context, and to the tasks.
// Cancellation   context.stop(), on any thread, cancels the tasks; the context then runs on until
//                they have ended, and run() throws UsageError. A context that is stopped already when
//                run() begins counts as stopped then: Asio's rule is to restart() it first.
// Resumption     in callbacks of the context, never inside of another callback.
// Errors         what another handler throws out of the context cancels the tasks, and is rethrown
//                when they have ended.
// Allocation     one record, and one operation of Asio's, per sleep; the latter per wake-up.
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "weft/adapt/asio_names.h"
#include "weft/base/assert.h"
#include "weft/core/event_loop.h"

namespace weft::inline v0 {

template <>
struct EventLoopTraits<detail::asio_lib::io_context> {
  using Context = detail::asio_lib::io_context;
  using Clock = std::chrono::steady_clock;

  class Session {
   public:
    explicit Session(Context& context)
        : context_(context), work_(context.get_executor()), thread_(std::this_thread::get_id()) {}
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() {
      work_.reset();  // which may stop the context, too
      context_.restart();
    }

   private:
    friend EventLoopTraits;
    Context& context_;
    detail::asio_lib::executor_work_guard<Context::executor_type> work_;
    std::thread::id thread_;
  };

  static void run(Session& session) { session.context_.run(); }
  static void stop(Session& session) { session.context_.stop(); }
  static void restart(Session& session) { session.context_.restart(); }
  static bool is_running(Context& context) noexcept {
    return context.get_executor().running_in_this_thread();
  }
  static EventLoopID event_loop_id(Context& context) { return EventLoopID(&context); }

  static void post(Session& session, void (*fn)(void*), void* context) {
    detail::asio_lib::post(session.context_, Call(fn, context, session.thread_));
  }
  static void* call_at(Session& session, Clock::time_point when, void (*fn)(void*), void* context) {
    auto owned = std::make_unique<Timer>(session.context_, fn, context);
    Timer* timer = owned.get();
    timer->timer.expires_at(when);
    timer->timer.async_wait([owned = std::move(owned)](detail::AsioError) {
      if (owned->fn) owned->fn(owned->context);
    });
    return timer;
  }
  static void take_back(Session&, void* call) noexcept {
    Timer& timer = *static_cast<Timer*>(call);
    timer.fn = nullptr;
    timer.timer.cancel();  // and its handler, which owns it, comes soon
  }

 private:
  // Called once in any case: by the context, or at its end.
  class Call {
   public:
    Call(void (*fn)(void*), void* context, std::thread::id thread) noexcept
        : fn_(fn), context_(context), thread_(thread) {}
    Call(Call&& other) noexcept
        : fn_(std::exchange(other.fn_, nullptr)),
          context_(other.context_),
          thread_(other.thread_) {}
    Call& operator=(Call&&) = delete;
    ~Call() {
      if (fn_) fn_(context_);
    }
    void operator()() {
      WEFT_ASSERT(std::this_thread::get_id() == thread_,
                  "an io_context that weft::run() drives is run by that thread alone");
      std::exchange(fn_, nullptr)(context_);
    }

   private:
    void (*fn_)(void*);
    void* context_;
    std::thread::id thread_;
  };

  struct Timer {
    Timer(Context& of, void (*call)(void*), void* with) : timer(of), fn(call), context(with) {}
    detail::asio_lib::steady_timer timer;
    void (*fn)(void*);  // null: taken back
    void* context;
  };
};

}  // namespace weft::inline v0
