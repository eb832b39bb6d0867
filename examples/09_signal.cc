// SPDX-License-Identifier: MIT
// Signals and slots as awaitables: wait until an object emits a signal.
//
// Run: build/release/examples/09_signal
// See: a reader driven by a socket's ready_read signal; a long task cancelled by a button press.
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// The other library. One slot per signal is enough here.
class Signal {
 public:
  void connect(std::function<void()> slot) { slot_ = std::move(slot); }
  void disconnect() { slot_ = nullptr; }
  void emit() {
    if (auto slot = slot_) slot();  // a copy: it may disconnect itself
  }

 private:
  std::function<void()> slot_;
};
struct Button {
  Signal clicked;
};
struct Socket {
  std::string bytes;
  Signal ready_read;
  void arrive(const char* text) {
    bytes += text;
    ready_read.emit();
  }
};

// [awaiter]
template <class Object>
class SignalAwaitable {
 public:
  SignalAwaitable(Object& object, Signal Object::* signal) : signal_(&(object.*signal)) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    signal_->connect([this, handle] {
      signal_->disconnect();  // a wait is resumed once
      handle.resume();
    });
  }
  void await_resume() const noexcept {}
  std::true_type await_cancel(std::coroutine_handle<>) noexcept {
    signal_->disconnect();
    return {};
  }

 private:
  Signal* signal_;
};
// [/awaiter]

// [use]
Task<> read_all(Socket& socket) {
  while (true) {
    // A signal is an edge: look first, or wait for something that has happened already.
    while (socket.bytes.empty()) co_await SignalAwaitable(socket, &Socket::ready_read);
    std::string bytes = std::exchange(socket.bytes, "");
    if (bytes == "end") co_return;
    std::printf("read: %s\n", bytes.c_str());
  }
}
// [/use]

Task<> long_running_task() {
  for (int percent = 0;; percent += 10) {
    std::printf("%d %%\n", percent);
    co_await sleep_for(10ms);
  }
}

Task<> async_main(Socket& socket, Button& cancel_button) {
  Scope& scope = co_await current_scope();
  StartedTask<> reader = read_all(socket).start(scope);
  for (const char* text : {"hello", "world", "end"}) {
    co_await sleep_for(1ms);
    socket.arrive(text);
  }
  co_await std::move(reader);

  auto user = [&]() -> Task<> {
    co_await sleep_for(25ms);
    cancel_button.clicked.emit();
  };
  StartedTask<> pressing = user().start(scope);
  // [any_of]
  auto [finished, pressed] =
      co_await any_of(long_running_task(), SignalAwaitable(cancel_button, &Button::clicked));
  std::printf("%s\n", pressed ? "cancelled by the button" : "finished");
  // [/any_of]
}

int main() {
  Socket socket;
  Button cancel_button;
  testing::VirtualLoop loop;
  run(loop, async_main(socket, cancel_button));
}
