// SPDX-License-Identifier: MIT
#include "weft/adapt/qt_loop.h"

#include <QApplication>
#include <QTimer>
#include <functional>
#include <memory>
#include <thread>

#include "support/bridge_suite.h"
#include "support/qt_app.h"

namespace {

using namespace weft;
using namespace weft::test;

template <class App>
struct QtAppHome {
  QtApp<App> app;

  auto& loop() { return app.get(); }
  void call(std::function<void()> fn) { QTimer::singleShot(0, &app.get(), std::move(fn)); }
  void stop() { QCoreApplication::quit(); }
};
using CoreHome = QtAppHome<QCoreApplication>;
using WidgetsHome = QtAppHome<QApplication>;

struct EventLoopHome {
  QtApp<QCoreApplication> app;
  QEventLoop nested;

  auto& loop() { return nested; }
  void call(std::function<void()> fn) { QTimer::singleShot(0, &nested, std::move(fn)); }
  void stop() { nested.quit(); }
};

}  // namespace

namespace weft::test {
INSTANTIATE_TYPED_TEST_SUITE_P(QtCore, BridgeTest, CoreHome);
INSTANTIATE_TYPED_TEST_SUITE_P(QtWidgets, BridgeTest, WidgetsHome);
INSTANTIATE_TYPED_TEST_SUITE_P(QtEventLoop, BridgeTest, EventLoopHome);
}  // namespace weft::test

namespace {

TEST(QtLoop, QuitFromAnotherThreadEndsTheTasks) {
  QtApp<QCoreApplication> app;
  Events events;
  std::jthread quitter;
  auto main = [&]() -> Task<void> {
    co_await yield();  // until exec() runs: before, Qt forgets a quit()
    // Not invokeMethod(): its slot object is counted by atomics of Qt's that TSan does not see.
    quitter =
        std::jthread([&] { QCoreApplication::postEvent(&app.get(), new QEvent(QEvent::Quit)); });
    Marker marker(events, "main");
    co_await suspend_forever();
  };
  EXPECT_THROW(run(app.get(), main()), UsageError);
  EXPECT_EQ(events, (Events{"~main"}));
}

TEST(QtLoop, ARunThatNeverWaitedDoesNotStopTheNextLoop) {
  QtApp<QCoreApplication> app;
  EXPECT_EQ(run(app.get(), returns(1)), 1);
  bool called = false;
  QEventLoop plain;
  QTimer::singleShot(1, &plain, [&] {
    called = true;
    plain.quit();
  });
  plain.exec();
  EXPECT_TRUE(called);
}

TEST(QtLoop, AnEventLoopInsideASlotIsALoopOfItsOwn) {
  QtApp<QCoreApplication> app;
  int value = 0;
  QTimer::singleShot(0, [&] {
    QEventLoop nested;
    auto main = []() -> Task<int> {
      co_await sleep_for(1ms);
      co_return 4;
    };
    value = run(nested, main());
    QCoreApplication::quit();
  });
  QCoreApplication::exec();
  EXPECT_EQ(value, 4);
}

TEST(QtLoop, ARunInsideARunIsRefusedForEveryLoopOfTheThread) {
  QtApp<QCoreApplication> app;
  auto main = []() -> Task<void> {
    co_await yield();
    QEventLoop nested;
    EXPECT_THROW(run(nested, returns(1)), UsageError);
  };
  run(app.get(), main());
}

// L2: a task that opens a nested event loop goes on before any other task does.
TEST(QtLoop, NoTaskRunsInsideANestedEventLoopOfATask) {
  QtApp<QCoreApplication> app;
  Events events;
  auto other = [&]() -> Task<void> {
    co_await sleep_for(2ms);
    events.push_back("other");
  };
  auto opens = [&]() -> Task<void> {
    co_await yield();
    QEventLoop nested;
    QTimer::singleShot(10, &nested, &QEventLoop::quit);
    nested.exec();
    events.push_back("closed");
  };
  auto main = [&]() -> Task<void> { co_await all_of(other(), opens()); };
  run(app.get(), main());
  EXPECT_EQ(events, (Events{"closed", "other"}));
}

TEST(QtLoop, AnotherThreadsLoopIsRefused) {
  QtApp<QCoreApplication> app;
  std::jthread other([&] { EXPECT_THROW(run(app.get(), returns(1)), UsageError); });
}

}  // namespace
