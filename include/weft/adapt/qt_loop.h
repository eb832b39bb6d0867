// SPDX-License-Identifier: MIT
#pragma once
// weft on Qt: tasks run in events of a QCoreApplication, a QApplication or a QEventLoop.
//
//     int main(int argc, char** argv) {
//       QApplication app(argc, argv);
//       return weft::run(app, async_main());
//     }
//
// Signals are awaited with qt_signal.h. A QEventLoop serves in a thread of Qt's, or for a run() that
// blocks in the middle of a slot, as its exec() does.
//
// Threads        the thread that calls run() drives the loop; it is the thread of the object. Other
//                threads may post to the tasks.
// Cancellation   quit() or exit(), by anyone, cancels the tasks; the loop then runs on until they
//                have ended, and run() throws UsageError. Closing the last window quits, too, unless
//                the application is told not to (setQuitOnLastWindowClosed()).
// Resumption     in an event of its own, never inside of a slot. In a nested event loop that a task
//                opens (QDialog::exec()) no task runs (L2); open() the dialog and await finished().
// Errors         two run()s in one thread, one inside the other, are refused whatever the objects:
//                Qt has one dispatcher per thread.
// Allocation     one timer and one record per sleep; Qt's event per wake-up.
#include <QAbstractEventDispatcher>
#include <QCoreApplication>
#include <QEvent>
#include <QEventLoop>
#include <QObject>
#include <QThread>
#include <QTimerEvent>
#include <algorithm>
#include <chrono>
#include <climits>
#include <concepts>
#include <unordered_map>

#include "weft/adapt/call_queue.h"
#include "weft/atomic/atomic.h"
#include "weft/core/event_loop.h"

namespace weft::inline v0 {

namespace detail {

// Where Qt's events for weft arrive. It has no signals, so it needs no moc.
class QtSeat : private QObject {
 public:
  using Clock = std::chrono::steady_clock;

  QtSeat() = default;
  // Events under way go with the object; the calls are made by the queue's end.
  ~QtSeat() override = default;

  void post(void (*fn)(void*), void* context) {
    if (!calls_.push(fn, context)) return;
    auto* event = new QEvent(QEvent::User);
    posted_.fetch_add(1, release);  // P
    QCoreApplication::postEvent(this, event);
  }
  void* call_at(Clock::time_point when, void (*fn)(void*), void* context) {
    auto* call = new Timer(when, fn, context);
    start(*call);
    return call;
  }
  void take_back(void* call) noexcept {
    auto* timer = static_cast<Timer*>(call);
    killTimer(timer->id);
    timers_.erase(timer->id);
    delete timer;
  }

 private:
  struct Timer {
    Timer(Clock::time_point at, void (*call)(void*), void* with) noexcept
        : when(at), fn(call), context(with) {}
    Clock::time_point when;
    void (*fn)(void*);
    void* context;
    int id = 0;
  };

  bool event(QEvent* event) override {
    // acquire: the event. Qt's own lock brings it, too, but no sanitizer sees that. [pairs with P]
    static_cast<void>(posted_.load(acquire));
    if (event->type() != QEvent::User) return QObject::event(event);
    calls_.call_all();
    return true;
  }
  void timerEvent(QTimerEvent* event) override {
    auto found = timers_.find(event->timerId());
    if (found == timers_.end()) return;
    Timer* timer = found->second;
    killTimer(timer->id);
    timers_.erase(found);
    // Qt counts milliseconds in an int: a sleep of months takes several.
    if (Clock::now() < timer->when) return start(*timer);
    void (*fn)(void*) = timer->fn;
    void* context = timer->context;
    delete timer;
    fn(context);
  }
  void start(Timer& timer) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(timer.when - Clock::now()).count();
    using Count = decltype(left);
    timer.id = startTimer(static_cast<int>(std::clamp<Count>(left, 0, INT_MAX)), Qt::PreciseTimer);
    timers_.emplace(timer.id, &timer);
  }

  std::unordered_map<int, Timer*> timers_;
  CallQueue calls_;
  Atomic<unsigned> posted_{0};
};

template <class L>
class QtSession : public QtSeat {
 public:
  explicit QtSession(L& loop) : loop_(loop) {
    if (loop.thread() != QThread::currentThread()) {
      throw_usage_error("run() on a loop of Qt's is called in the thread of that object");
    }
  }
  // For a QCoreApplication exec() and exit() are static, for a QEventLoop they are not.
  void run() {
    running_ = true;
    loop_.exec();
    running_ = false;
  }
  void stop() {
    if (running_) loop_.exit();  // else it would stop the next exec()
  }

 private:
  L& loop_;
  bool running_ = false;
};

template <class L>
struct QtTraits {
  using Session = QtSession<L>;
  static void run(Session& session) { session.run(); }
  static void stop(Session& session) { session.stop(); }
  static void restart(Session&) noexcept {}
  static EventLoopID event_loop_id(L& loop) { return EventLoopID(loop.thread()); }
  static void post(Session& session, void (*fn)(void*), void* context) {
    session.post(fn, context);
  }
  static void* call_at(Session& session, QtSeat::Clock::time_point when, void (*fn)(void*),
                       void* context) {
    return session.call_at(when, fn, context);
  }
  static void take_back(Session& session, void* call) noexcept { session.take_back(call); }
};

}  // namespace detail

template <std::derived_from<QCoreApplication> App>
struct EventLoopTraits<App> : detail::QtTraits<App> {
  static bool is_running(App& app) noexcept {
    return app.thread() == QThread::currentThread() && app.thread()->loopLevel() > 0;
  }
};

template <>
struct EventLoopTraits<QEventLoop> : detail::QtTraits<QEventLoop> {
  static bool is_running(QEventLoop& loop) noexcept { return loop.isRunning(); }
};

}  // namespace weft::inline v0
