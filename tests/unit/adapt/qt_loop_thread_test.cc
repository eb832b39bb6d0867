// SPDX-License-Identifier: MIT
// A QThread says that it has ended under a lock of Qt's own: not for the thread sanitizer
// (tests/CMakeLists.txt).
#include <QCoreApplication>
#include <QEventLoop>
#include <QThread>
#include <memory>

#include "support/bridge_suite.h"
#include "support/qt_app.h"
#include "weft/adapt/qt_loop.h"

namespace {

using namespace weft;
using namespace weft::test;

TEST(QtLoop, AnEventLoopServesInAThreadOfQts) {
  QtApp<QCoreApplication> app;
  int value = 0;
  std::unique_ptr<QThread> thread(QThread::create([&] {
    QEventLoop loop;
    auto main = []() -> Task<int> {
      auto late = co_await timeout(1ms, suspend_forever());
      co_return late.has_value() ? 0 : 6;
    };
    value = run(loop, main());
  }));
  thread->start();
  EXPECT_TRUE(thread->wait());
  EXPECT_EQ(value, 6);
}

}  // namespace
