// SPDX-License-Identifier: MIT
// Awaiters that cannot move, and descriptions that can: a builder by hand, and make_awaitable.
//
// Run: build/release/examples/08_async_read_builder
// See: the same immovable awaiter used alone and inside any_of, where it wins once and loses once.
#include <array>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// The other library: one read, completed by whoever calls bytes_arrive().
std::function<void(std::string_view)> g_pending;

void bytes_arrive(std::string_view text) {
  if (g_pending) std::exchange(g_pending, nullptr)(text);
}

// [awaiter]
class AsyncRead {
 public:
  AsyncRead(int, char* buf, size_t len) : buf_(buf), len_(len) {}
  AsyncRead(AsyncRead&&) = delete;  // it is called back at its address

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    g_pending = [handle, this](std::string_view text) {
      count_ = static_cast<ssize_t>(text.copy(buf_, len_));
      handle.resume();
    };
  }
  ssize_t await_resume() const { return count_; }
  std::true_type await_cancel(std::coroutine_handle<>) noexcept {
    g_pending = nullptr;
    return {};
  }

 private:
  char* buf_;
  size_t len_;
  ssize_t count_ = 0;
};
// [/awaiter]

// [builder]
class AsyncReadBuilder {
 public:
  AsyncReadBuilder(int fd, char* buf, size_t len) : fd_(fd), buf_(buf), len_(len) {}
  AsyncRead operator co_await() && { return AsyncRead(fd_, buf_, len_); }

 private:
  int fd_;
  char* buf_;
  size_t len_;
};

Awaitable<ssize_t> auto read_by_builder(int fd, char* buf, size_t len) {
  return AsyncReadBuilder(fd, buf, len);
}
// [/builder]

// [make_awaitable]
Awaitable<ssize_t> auto read_some(int fd, char* buf, size_t len) {
  return make_awaitable<AsyncRead>(fd, buf, len);
}
// [/make_awaitable]

Task<> peer() {
  for (const char* text : {"one", "two"}) {
    co_await sleep_for(10ms);
    bytes_arrive(text);
  }
}

Task<> async_main() {
  std::array<char, 16> buf;
  Scope& scope = co_await current_scope();
  StartedTask<> writer = peer().start(scope);

  ssize_t count = co_await read_by_builder(0, buf.data(), buf.size());
  std::printf("alone: %zd bytes\n", count);
  // [any_of]
  for (auto patience : {20ms, 5ms}) {
    auto [read, elapsed] =
        co_await any_of(read_some(0, buf.data(), buf.size()), sleep_for(patience));
    if (read) std::printf("any_of: %zd bytes\n", *read);
    if (elapsed) std::printf("any_of: nothing came in time\n");
  }
  // [/any_of]
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
