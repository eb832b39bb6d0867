// SPDX-License-Identifier: MIT
#pragma once
// weft on GLib: tasks run in sources of a GMainContext, and sleep by them.
//
//     GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
//     int result = weft::run(*loop, async_main());        // g_main_loop_quit(loop) ends it early
//
//     int result = weft::run(*g_main_context_default(), async_main());
//
// A context has no loop of its own: weft then makes one for the time of the run(). Either way the
// context is the thread's default during run(), so that operations of GIO that a task begins call
// back there; await those with until_callback() (examples/22_glib.cc).
//
// Threads        the thread that calls run() owns the context until run() returns. Other threads may
//                post to the tasks and attach sources.
// Cancellation   g_main_loop_quit(), on any thread, cancels the tasks; the loop then runs on until
//                they have ended, and run() throws UsageError.
// Resumption     in a source of its own with G_PRIORITY_DEFAULT. GLib serves sources of a lower
//                priority only when no other is ready: tasks that yield() all the time starve idle
//                functions and GTK's redraw, as every busy source of that priority does. Sleeps that
//                are overdue together end in the order in which they began.
// Errors         UsageError if another thread owns the context.
// Allocation     one source and one record per sleep.
#include <glib.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "weft/adapt/call_queue.h"
#include "weft/core/event_loop.h"

namespace weft::inline v0 {

namespace detail {

// A source that calls fn(context) when its time has come.
struct GlibSource {
  using Clock = std::chrono::steady_clock;

  struct Unref {
    void operator()(GSource* source) const noexcept {
      g_source_destroy(source);
      g_source_unref(source);
    }
  };
  using Owned = std::unique_ptr<GSource, Unref>;

  // `repeat`: it stays, and waits for its next ready time.
  static Owned make(GMainContext* at, bool repeat, void (*fn)(void*), void* context) {
    GSource* source = g_source_new(&functions(), sizeof(GlibSource));
    auto* self = reinterpret_cast<GlibSource*>(source);
    self->fn = fn;
    self->context = context;
    self->repeat = repeat;
    g_source_set_name(source, "weft");
    g_source_attach(source, at);
    return Owned(source);
  }
  // GLib's clock is the steady one, in microseconds.
  static std::int64_t ready_time(Clock::time_point when) {
    return std::chrono::ceil<std::chrono::microseconds>(when.time_since_epoch()).count();
  }

  GSource base;  // first: GLib knows no more of it
  void (*fn)(void*);
  void* context;
  bool repeat;

 private:
  static GSourceFuncs& functions() {
    static GSourceFuncs all{nullptr, nullptr, &dispatch, nullptr, nullptr, nullptr};
    return all;
  }
  static gboolean dispatch(GSource* source, GSourceFunc, void*) {
    auto* self = reinterpret_cast<GlibSource*>(source);
    bool repeat = self->repeat;
    if (repeat) g_source_set_ready_time(source, -1);  // first: it may be set again meanwhile
    self->fn(self->context);
    return repeat ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
  }
};

class GlibSession {
 public:
  explicit GlibSession(GMainLoop& loop)
      : loop_(g_main_loop_ref(&loop)), context_(g_main_loop_get_context(&loop)) {
    begin();
  }
  explicit GlibSession(GMainContext& context)
      : loop_(g_main_loop_new(&context, FALSE)), context_(&context) {
    begin();
  }
  GlibSession(const GlibSession&) = delete;
  GlibSession& operator=(const GlibSession&) = delete;
  ~GlibSession() {
    wake_.reset();
    g_main_context_pop_thread_default(context_);
    g_main_context_release(context_);
  }

  void run() { g_main_loop_run(loop_.get()); }
  void stop() { g_main_loop_quit(loop_.get()); }
  void post(void (*fn)(void*), void* context) {
    if (calls_.push(fn, context)) g_source_set_ready_time(wake_.get(), 0);
  }
  void* call_at(GlibSource::Clock::time_point when, void (*fn)(void*), void* context) {
    GSource* source = GlibSource::make(context_, false, fn, context).release();
    g_source_set_ready_time(source, GlibSource::ready_time(when));
    g_source_unref(source);  // the context keeps it until it has been called
    return source;
  }
  static void take_back(void* call) noexcept { g_source_destroy(static_cast<GSource*>(call)); }

 private:
  struct Unref {
    void operator()(GMainLoop* loop) const noexcept { g_main_loop_unref(loop); }
  };

  void begin() {
    if (!g_main_context_acquire(context_)) {
      throw_usage_error("this GMainContext is run by another thread");
    }
    g_main_context_push_thread_default(context_);
    auto woken = [](void* calls) { static_cast<CallQueue*>(calls)->call_all(); };
    wake_ = GlibSource::make(context_, true, woken, &calls_);
  }

  std::unique_ptr<GMainLoop, Unref> loop_;
  GMainContext* context_;
  CallQueue calls_;
  GlibSource::Owned wake_;
};

// What both kinds of loop have in common.
struct GlibTraits {
  using Session = GlibSession;
  static void run(Session& session) { session.run(); }
  static void stop(Session& session) { session.stop(); }
  static void restart(Session&) noexcept {}
  static void post(Session& session, void (*fn)(void*), void* context) {
    session.post(fn, context);
  }
  static void* call_at(Session& session, GlibSource::Clock::time_point when, void (*fn)(void*),
                       void* context) {
    return session.call_at(when, fn, context);
  }
  static void take_back(Session&, void* call) noexcept { Session::take_back(call); }
};

}  // namespace detail

template <>
struct EventLoopTraits<GMainLoop> : detail::GlibTraits {
  static bool is_running(GMainLoop& loop) noexcept { return g_main_loop_is_running(&loop); }
  static EventLoopID event_loop_id(GMainLoop& loop) {
    return EventLoopID(g_main_loop_get_context(&loop));
  }
};

template <>
struct EventLoopTraits<GMainContext> : detail::GlibTraits {
  static bool is_running(GMainContext& context) noexcept {
    return g_main_depth() > 0 && g_main_context_is_owner(&context);
  }
  static EventLoopID event_loop_id(GMainContext& context) { return EventLoopID(&context); }
};

}  // namespace weft::inline v0
