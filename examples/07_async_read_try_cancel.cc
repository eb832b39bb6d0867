// SPDX-License-Identifier: MIT
// Third form: a cancel is a request, and the operation answers later, as io_uring and IOCP do.
//
// Run: build/release/examples/07_async_read_try_cancel
// See: a cancel that succeeds, one tick later; and a cancel that came too late, so that the bytes
//      are delivered and cancellation strikes at the next co_await.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// The other library, of the completion kind: one read at a time, completed at the next tick.
struct Ring {
  char* buf = nullptr;
  std::function<void(ssize_t)> cb;
  bool cancel_asked = false;
  std::string arrived;
} g_ring;

void* async_read(int, void* buf, size_t, std::function<void(ssize_t)> cb) {
  g_ring.buf = static_cast<char*>(buf);
  g_ring.cb = std::move(cb);
  g_ring.cancel_asked = false;
  return &g_ring;
}
void async_try_cancel_read(void*) { g_ring.cancel_asked = true; }
void tick() {
  if (!g_ring.cb || (g_ring.arrived.empty() && !g_ring.cancel_asked)) return;
  std::string bytes = std::exchange(g_ring.arrived, "");  // what has arrived beats the cancel
  std::copy(bytes.begin(), bytes.end(), g_ring.buf);
  std::exchange(g_ring.cb, nullptr)(bytes.empty() ? -ECANCELED : std::ssize(bytes));
}

// [awaiter]
class AsyncRead {
 public:
  AsyncRead(int fd, void* buf, size_t len) : fd_(fd), buf_(buf), len_(len) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    read_ = async_read(fd_, buf_, len_, [handle, this](ssize_t result) {
      result_ = result;
      handle.resume();
    });
  }
  ssize_t await_resume() const { return result_; }

  bool await_cancel(std::coroutine_handle<>) noexcept {
    async_try_cancel_read(read_);
    return false;  // not yet: the callback will be called, once, as ever
  }
  bool await_must_resume() const noexcept { return result_ != -ECANCELED; }

 private:
  int fd_;
  void* buf_;
  size_t len_;
  void* read_ = nullptr;
  ssize_t result_ = 0;
};
// [/awaiter]

Task<> reads() {
  std::array<char, 16> buf;
  while (true) {
    ssize_t count = co_await AsyncRead(0, buf.data(), buf.size());
    std::printf("  read %zd bytes: %.*s\n", count, static_cast<int>(count), buf.data());
  }
}

Task<> cancel_one(const char* name, std::string arrived) {
  std::printf("%s\n", name);
  Scope& scope = co_await current_scope();
  StartedTask<> reader = reads().start(scope);
  co_await yield();
  g_ring.arrived = arrived;
  reader.cancel();
  co_await sleep_for(1ms);  // await_cancel() has been called, and the answer is outstanding
  std::printf("  cancelled, and ended: %s\n", reader.is_done() ? "yes" : "not yet");
  tick();
  Outcome<void> how = co_await reader.outcome();
  std::printf("  ended as cancelled: %s\n", how.is_cancelled() ? "yes" : "no");
}

Task<> async_main() {
  co_await cancel_one("nothing had arrived", "");
  co_await cancel_one("the bytes came first", "hello");
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
