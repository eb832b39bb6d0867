// SPDX-License-Identifier: MIT
#pragma once
// weft on libuv: tasks run in callbacks of a uv_loop_t, and sleep by its timers.
//
//     uv_loop_t loop;
//     uv_loop_init(&loop);
//     int result = weft::run(loop, async_main());
//     uv_loop_close(&loop);
//
// The task runs beside whatever else the loop does. libuv's own operations are awaited with
// until_callback(); its handles carry a `data` pointer for that (examples/21_libuv.cc).
//
// Threads        the thread that calls run() drives the loop. Other threads may post to the tasks,
//                and touch the loop by uv_async_send() only: that is libuv's rule.
// Cancellation   uv_stop(), from a callback, cancels the tasks; the loop then runs on until they
//                have ended, and run() throws UsageError.
// Resumption     in callbacks of the loop, never inside of another callback.
// Errors         run() throws std::system_error if libuv has no handle for it.
// The end        weft's own handles are closed before run() returns, so that uv_loop_close() has
//                nothing of weft's to complain of. For that the loop is turned once more without
//                waiting, in which callbacks of other handles may come.
// Allocation     one timer and one record per sleep.
#include <uv.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "weft/adapt/call_queue.h"
#include "weft/core/event_loop.h"

namespace weft::inline v0 {

template <>
struct EventLoopTraits<uv_loop_t> {
  using Clock = std::chrono::steady_clock;

  // Invariants
  //   I1  open_ counts weft's handles on the loop whose close callback has not come.
  class Session {
   public:
    explicit Session(uv_loop_t& loop) : loop_(loop) {
      if (int error = uv_async_init(&loop, &wake_, &woken); error != 0) {
        throw std::system_error(-error, std::generic_category(), "uv_async_init");
      }
      wake_.data = this;
      open_ = 1;
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() {
      uv_close(reinterpret_cast<uv_handle_t*>(&wake_),
               [](uv_handle_t* handle) { --static_cast<Session*>(handle->data)->open_; });
      while (open_ > 0) uv_run(&loop_, UV_RUN_NOWAIT);
    }

   private:
    friend EventLoopTraits;
    static void woken(uv_async_t* wake) { static_cast<Session*>(wake->data)->calls_.call_all(); }

    uv_loop_t& loop_;
    uv_async_t wake_;  // also keeps the loop alive
    detail::CallQueue calls_;
    int open_ = 0;  // I1
    bool running_ = false;
  };

  static void run(Session& session) {
    session.running_ = true;
    uv_run(&session.loop_, UV_RUN_DEFAULT);
    session.running_ = false;
  }
  static void stop(Session& session) {
    if (session.running_) uv_stop(&session.loop_);  // else it would stop the next uv_run()
  }
  static void restart(Session&) noexcept {}
  static bool is_running(uv_loop_t&) noexcept { return false; }  // libuv does not say
  static EventLoopID event_loop_id(uv_loop_t& loop) { return EventLoopID(&loop); }

  static void post(Session& session, void (*fn)(void*), void* context) {
    if (session.calls_.push(fn, context)) uv_async_send(&session.wake_);
  }
  static void* call_at(Session& session, Clock::time_point when, void (*fn)(void*), void* context) {
    auto timer = std::make_unique<Timer>(session, when, fn, context);
    uv_timer_init(&session.loop_, &timer->handle);  // never fails, nor does starting it
    timer->handle.data = timer.get();
    ++session.open_;
    timer->start();
    return timer.release();
  }
  static void take_back(Session&, void* call) noexcept { static_cast<Timer*>(call)->close(); }

 private:
  struct Timer {
    Timer(Session& of, Clock::time_point at, void (*call)(void*), void* with) noexcept
        : session(&of), when(at), fn(call), context(with) {}

    void start() {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
      uv_update_time(&session->loop_);  // libuv counts from the time that it last looked
      uv_timer_start(&handle, &due, left > 0 ? static_cast<std::uint64_t>(left) : 0, 0);
    }
    static void due(uv_timer_t* handle) {
      Timer& timer = *static_cast<Timer*>(handle->data);
      // libuv's clock is in whole milliseconds, rounded down: it may be early by one.
      if (Clock::now() < timer.when) return timer.start();
      void (*fn)(void*) = timer.fn;
      void* context = timer.context;
      timer.close();
      fn(context);
    }
    void close() noexcept {
      uv_close(reinterpret_cast<uv_handle_t*>(&handle), [](uv_handle_t* closed) {
        std::unique_ptr<Timer> timer(static_cast<Timer*>(closed->data));
        --timer->session->open_;
      });
    }

    uv_timer_t handle;
    Session* session;
    Clock::time_point when;
    void (*fn)(void*);
    void* context;
  };
};

}  // namespace weft::inline v0
