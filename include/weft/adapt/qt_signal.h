// SPDX-License-Identifier: MIT
#pragma once
// weft::qt_signal(sender, signal): waits until an object of Qt's emits a signal.
//
//     co_await qt_signal(&button, &QPushButton::clicked);
//     QString text = co_await qt_signal(&edit, &QLineEdit::textChanged);
//     auto [done, pressed] = co_await any_of(work(), qt_signal(&cancel, &QPushButton::clicked));
//
// A signal is an edge: what is emitted while nobody waits is gone. Look at the object first, and
// wait only if there is nothing yet (examples/23_qt_echo.cc). An overloaded signal is picked by
// qOverload<int>(&QSpinBox::valueChanged) or the like.
//
// Result         one argument: itself, copied; none: void; several: a tuple. Qt's private marker
//                argument does not count.
// Threads        await it in any task, on any loop. The object may live in another thread of Qt's
//                and emit there, but must not be destroyed while the wait begins.
// Cancellation   a cancel point: disconnects, and ends at once. A signal that came before is
//                delivered (L5).
// Resumption     on the waiter's home loop, never inside of the emission.
// Errors         QtSenderDestroyed, if the object is destroyed while it is awaited, or was before.
//                An argument whose copy throws ends the wait with that exception.
// Allocation     one record per wait, which the connection shares, and Qt's own for two connections.
//
// Invariants
//   I1  the record's `awaiter` is set from the connection until a signal has claimed the wait, or it
//       was cancelled; whoever clears it does so under the record's mutex.
#include <QMetaObject>
#include <QObject>
#include <QPointer>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/core/callback.h"

namespace weft::inline v0 {

class QtSenderDestroyed : public std::runtime_error {
 public:
  QtSenderDestroyed()
      : std::runtime_error("the object was destroyed whose signal a task waits for") {}
};

namespace detail {

// Signals that only their class may emit have a last argument of a type QPrivateSignal, which is
// private: it has a name for the compiler only.
template <class T>
consteval bool is_private_signal() {
  return std::string_view(__PRETTY_FUNCTION__).find("QPrivateSignal") != std::string_view::npos;
}

// The arguments that count, as values.
template <class Done, class... Args>
struct QtArgs {
  using type = Done;
};
template <class... Done, class First, class... Rest>
struct QtArgs<std::tuple<Done...>, First, Rest...> {
  using Next = std::conditional_t<is_private_signal<First>(), std::tuple<Done...>,
                                  std::tuple<Done..., std::decay_t<First>>>;
  using type = typename QtArgs<Next, Rest...>::type;
};

template <class Signal>
struct QtSignature;
template <class Object, class... Args>
struct QtSignature<void (Object::*)(Args...)> {
  using Sender = Object;
  using Values = typename QtArgs<std::tuple<>, Args...>::type;
};
template <class Object, class... Args>
struct QtSignature<void (Object::*)(Args...) const> : QtSignature<void (Object::*)(Args...)> {};

template <class Values>
class QtSignalAwaiterBase : protected CallbackPost {
 public:
  using native_awaiter = void;

  static constexpr bool await_ready() noexcept { return false; }
  bool await_cancel(Continuation) noexcept {
    if (!detach()) return false;  // a signal came first
    disconnect();
    return true;
  }
  static constexpr std::true_type await_must_resume() noexcept { return {}; }
  auto await_resume() {
    disconnect();
    if (error_) std::rethrow_exception(error_);
    if constexpr (std::tuple_size_v<Values> == 1) {
      return std::move(std::get<0>(*values_));
    } else if constexpr (std::tuple_size_v<Values> > 1) {
      return std::move(*values_);
    }
  }
  static void await_introspect(auto& tree) noexcept { tree.node("qt signal"); }

 protected:
  struct Record {
    std::mutex mutex;
    QtSignalAwaiterBase* awaiter;  // I1
  };

  QtSignalAwaiterBase() = default;
  ~QtSignalAwaiterBase() {
    if (!record_) return;
    detach();
    disconnect();
  }

  // Ends the wait with what `store` stores. Any thread.
  template <class Store>
  static void end(Record& record, Store store) noexcept {
    std::lock_guard lock(record.mutex);
    QtSignalAwaiterBase* awaiter = std::exchange(record.awaiter, nullptr);
    if (!awaiter) return;
    try {
      store(*awaiter);
    } catch (...) {
      awaiter->error_ = std::current_exception();
    }
    awaiter->send();  // under the lock: the awaiter's end waits for it
  }
  // Returns: false if a signal has ended the wait.
  bool detach() noexcept {
    std::lock_guard lock(record_->mutex);
    return std::exchange(record_->awaiter, nullptr) != nullptr;
  }
  void disconnect() noexcept {
    QObject::disconnect(signal_);
    QObject::disconnect(destroyed_);
  }

  std::shared_ptr<Record> record_;
  QMetaObject::Connection signal_;
  QMetaObject::Connection destroyed_;
  std::optional<Values> values_;
  std::exception_ptr error_;
};

// Sender: what was given; Signal: a member function of it or of a base.
template <class Sender, class Signal>
class QtSignalAwaiter final : public QtSignalAwaiterBase<typename QtSignature<Signal>::Values> {
  using Values = typename QtSignature<Signal>::Values;
  using Base = QtSignalAwaiterBase<Values>;
  using typename Base::Record;

 public:
  QtSignalAwaiter(QPointer<Sender> sender, Signal signal)
      : sender_(std::move(sender)), emitted_(signal) {}

  void await_suspend(Continuation waiter) {
    Sender* sender = sender_.data();
    if (!sender) throw QtSenderDestroyed();
    this->begin(waiter);
    this->record_ = std::make_shared<Record>();
    this->record_->awaiter = this;
    // Without a receiver, so that the slot is called in the thread that emits, at once.
    this->destroyed_ = QObject::connect(sender, &QObject::destroyed, [record = this->record_] {
      Base::end(*record, [](Base&) { throw QtSenderDestroyed(); });
    });
    connect(sender, std::make_index_sequence<std::tuple_size_v<Values>>());
  }

 private:
  template <std::size_t... I>
  void connect(Sender* sender, std::index_sequence<I...>) {
    this->signal_ = QObject::connect(
        sender, emitted_,
        [record = this->record_](const std::tuple_element_t<I, Values>&... values) {
          Base::end(*record, [&](Base& awaiter) { set_values(awaiter, values...); });
        });
  }
  template <class... Args>
  static void set_values(Base& awaiter, const Args&... values) {
    static_cast<QtSignalAwaiter&>(awaiter).values_.emplace(values...);
  }

  QPointer<Sender> sender_;
  Signal emitted_;
};

template <class Sender, class Signal>
class [[nodiscard]] QtSignal {
 public:
  QtSignal(Sender* sender, Signal signal) : sender_(sender), signal_(signal) {}
  QtSignalAwaiter<Sender, Signal> operator co_await() const {
    return QtSignalAwaiter<Sender, Signal>(sender_, signal_);
  }

 private:
  QPointer<Sender> sender_;
  Signal signal_;
};

}  // namespace detail

template <class Sender, class Signal>
  requires std::derived_from<Sender, typename detail::QtSignature<Signal>::Sender>
auto qt_signal(Sender* sender, Signal signal) {
  return detail::QtSignal<Sender, Signal>(sender, signal);
}

}  // namespace weft::inline v0
