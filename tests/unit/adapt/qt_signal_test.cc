// SPDX-License-Identifier: MIT
#include "weft/adapt/qt_signal.h"

#include <QApplication>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QTimer>
#include <memory>

#include "support/loop_fixture.h"
#include "support/qt_app.h"
#include "weft/adapt/qt_loop.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

template <class Fn>
void soon(Fn fn) {
  QTimer::singleShot(0, std::move(fn));
}

struct CountingButton : QPushButton {
  int receivers_of_clicked() const { return receivers(SIGNAL(clicked(bool))); }
};

TEST(QtSignal, TheResultIsWhatTheSignalCarries) {
  QtApp<QApplication> app;
  QPushButton button;
  QLineEdit edit;
  QScrollBar bar;
  auto main = [&]() -> Task<void> {
    soon([&] { edit.setText("hello"); });
    QString text = co_await qt_signal(&edit, &QLineEdit::textChanged);
    EXPECT_EQ(text, "hello");

    soon([&] { button.click(); });
    bool checked = co_await qt_signal(&button, &QPushButton::clicked);
    EXPECT_FALSE(checked);

    soon([&] { bar.setRange(2, 7); });
    auto [low, high] = co_await qt_signal(&bar, &QScrollBar::rangeChanged);
    EXPECT_EQ(low, 2);
    EXPECT_EQ(high, 7);

    QTimer timer;
    timer.start(1);
    static_assert(std::is_void_v<AwaitResult<decltype(qt_signal(&timer, &QTimer::timeout))>>,
                  "Qt's private argument does not count");
    co_await qt_signal(&timer, &QTimer::timeout);
  };
  run(app.get(), main());
}

// L2: the emission ends first.
TEST(QtSignal, TheWaiterGoesOnAfterTheEmission) {
  QtApp<QApplication> app;
  QPushButton button;
  Events events;
  auto main = [&]() -> Task<void> {
    soon([&] {
      button.click();
      button.click();  // nobody waits any more
      events.push_back("slot ends");
    });
    co_await qt_signal(&button, &QPushButton::clicked);
    events.push_back("resumed");
  };
  run(app.get(), main());
  EXPECT_EQ(events, (Events{"slot ends", "resumed"}));
}

TEST(QtSignal, AnyOfATaskAndAClick) {
  QtApp<QApplication> app;
  CountingButton button;
  Events events;
  auto main = [&]() -> Task<void> {
    QTimer::singleShot(2, &button, &QPushButton::click);
    auto [finished, pressed] =
        co_await any_of(parked_with(events, "work"), qt_signal(&button, &QPushButton::clicked));
    EXPECT_FALSE(finished);
    EXPECT_TRUE(pressed);
    auto [done, unpressed] = co_await any_of(yields(2), qt_signal(&button, &QPushButton::clicked));
    EXPECT_TRUE(done);
    EXPECT_FALSE(unpressed);
    EXPECT_EQ(button.receivers_of_clicked(), 0) << "a lost race disconnects";
  };
  run(app.get(), main());
  EXPECT_EQ(events, (Events{"~work"}));
}

TEST(QtSignal, ADestroyedSenderEndsTheWait) {
  QtApp<QApplication> app;
  auto button = std::make_unique<QPushButton>();
  auto main = [&]() -> Task<int> {
    int errors = 0;
    auto later = qt_signal(button.get(), &QPushButton::clicked);
    soon([&] { button.reset(); });
    try {
      co_await qt_signal(button.get(), &QPushButton::clicked);
    } catch (const QtSenderDestroyed&) {
      ++errors;
    }
    try {
      co_await later;
    } catch (const QtSenderDestroyed&) {
      ++errors;
    }
    co_return errors;
  };
  EXPECT_EQ(run(app.get(), main()), 2);
}

TEST(QtSignal, ASignalBeforeTheCancelIsDelivered) {
  QtApp<QApplication> app;
  QPushButton button;
  Events events;
  auto waits = [&]() -> Task<void> {
    co_await qt_signal(&button, &QPushButton::clicked);
    events.push_back("clicked");
  };
  auto main = [&]() -> Task<void> {
    StartedTask<void> s = waits().start_in_current_scope();
    co_await yields(2);
    button.click();
    s.cancel();
    Outcome<void> how = co_await s.outcome();
    EXPECT_FALSE(how.is_cancelled());
  };
  run(app.get(), main());
  EXPECT_EQ(events, (Events{"clicked"}));
}

TEST(QtSignal, WorksOnAnyLoop) {
  QtApp<QApplication> app;
  QPushButton button;
  weft::testing::ThreadLoop loop;
  auto main = [&]() -> Task<void> {
    auto clicks = [&]() -> Task<void> {
      co_await yield();
      button.click();
    };
    co_await all_of(qt_signal(&button, &QPushButton::clicked), clicks());
  };
  run(loop, main());
}

}  // namespace
