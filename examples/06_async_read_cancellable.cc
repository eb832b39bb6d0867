// SPDX-License-Identifier: MIT
// Second form: the operation can be called off, and that takes effect at once.
//
// Run: build/release/examples/06_async_read_cancellable
// See: a read that completes; a read that times out, with nothing left behind in the other library.
#include <algorithm>
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

// The other library, of the readiness kind: it reads only when there is something.
struct PendingRead {
  void* buf;
  size_t len;
  std::function<void(ssize_t)> cb;
};
PendingRead* g_pending = nullptr;

void* async_read(int, void* buf, size_t len, std::function<void(ssize_t)> cb) {
  return g_pending = new PendingRead{buf, len, std::move(cb)};
}
void async_cancel_read(void* read) {  // the callback will not be called any more
  delete static_cast<PendingRead*>(read);
  g_pending = nullptr;
}
void bytes_arrive(std::string_view text) {
  PendingRead* read = std::exchange(g_pending, nullptr);
  size_t count = std::min(text.size(), read->len);
  std::copy_n(text.data(), count, static_cast<char*>(read->buf));
  read->cb(static_cast<ssize_t>(count));
  delete read;
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

  std::true_type await_cancel(std::coroutine_handle<>) noexcept {
    async_cancel_read(read_);
    return {};
  }

 private:
  int fd_;
  void* buf_;
  size_t len_;
  void* read_ = nullptr;
  ssize_t result_ = 0;
};
static_assert(Abortable<AsyncRead> && Skippable<AsyncRead>);
// [/awaiter]

Task<ssize_t> read_once(std::array<char, 16>& buf) {
  co_return co_await AsyncRead(0, buf.data(), buf.size());
}

Task<> async_main() {
  std::array<char, 16> buf;
  Scope& scope = co_await current_scope();
  StartedTask<ssize_t> reader = read_once(buf).start(scope);
  co_await yield();
  bytes_arrive("hello");
  ssize_t count = co_await std::move(reader);
  std::printf("read %zd bytes: %.*s\n", count, static_cast<int>(count), buf.data());

  auto late = co_await timeout(10ms, AsyncRead(0, buf.data(), buf.size()));
  std::printf("%s, pending reads: %d\n", late ? "read" : "timed out", g_pending != nullptr);
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
