// SPDX-License-Identifier: MIT
// Signals that are emitted on another thread. A file of its own, because TSan cannot judge it: see
// tests/CMakeLists.txt.
#include <QCoreApplication>
#include <QThread>
#include <QTimer>

#include "support/loop_fixture.h"
#include "support/qt_app.h"
#include "weft/adapt/qt.h"

namespace {

using namespace weft;
using namespace weft::test;

// The object lives in a thread of Qt's, emits there, and its waiters are cancelled here meanwhile.
TEST(QtSignal, AnEmissionOnAnotherThreadRacesTheCancel) {
  QtApp<QCoreApplication> app;
  QThread thread;
  auto* timer = new QTimer;
  timer->setInterval(0);
  timer->moveToThread(&thread);
  QObject::connect(&thread, &QThread::started, timer, qOverload<>(&QTimer::start));
  QObject::connect(&thread, &QThread::finished, timer, &QObject::deleteLater);
  thread.start();
  auto waits = [&]() -> Task<int> {
    co_await qt_signal(timer, &QTimer::timeout);
    co_return 1;
  };
  auto main = [&]() -> Task<int> {
    int ended = 0;
    for (int i = 0; i < 300; ++i) {
      StartedTask<int> s = waits().start_in_current_scope();
      co_await yields(i % 4);
      s.cancel();
      Outcome<int> how = co_await s.outcome();
      ended += how.is_cancelled() || how.has_value();
    }
    ended += co_await waits();
    co_return ended;
  };
  EXPECT_EQ(run(app.get(), main()), 301);
  thread.quit();
  thread.wait();
}

}  // namespace
