// SPDX-License-Identifier: MIT
// A callback function as an awaitable, first form: the operation cannot be cancelled.
//
// Run: build/release/examples/05_async_read_callback
// See: bytes from a pipe, read by a thread of another library; then a reader that is cancelled while
//      it waits, still gets its bytes, and ends at its next co_await.
#include <unistd.h>

#include <array>
#include <coroutine>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "weft/testing/thread_loop.h"
#include "weft/weft.h"

using namespace weft;

// The other library: a thread per read, which calls back from there.
std::vector<std::jthread> g_readers;

void async_read(int fd, void* buf, size_t len, std::function<void(ssize_t)> cb) {
  g_readers.emplace_back([=] { cb(::read(fd, buf, len)); });
}

// [awaiter]
class AsyncRead {
 public:
  AsyncRead(int fd, void* buf, size_t len) : fd_(fd), buf_(buf), len_(len) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    async_read(fd_, buf_, len_, [handle, this](ssize_t result) {
      result_ = result;
      handle.resume();  // from any thread: the task goes on at home
    });
  }
  ssize_t await_resume() const { return result_; }

 private:
  int fd_;  // a copy of the arguments
  void* buf_;
  size_t len_;
  ssize_t result_ = 0;
};
// [/awaiter]

// [use]
Task<> read_all(int fd) {
  std::array<char, 1024> buf;
  while (true) {
    ssize_t len = co_await AsyncRead(fd, buf.data(), buf.size());
    if (len == 0) co_return;  // end of file
    if (len < 0) throw std::runtime_error("read failed");
    std::printf("read %zd bytes: %.*s\n", len, static_cast<int>(len), buf.data());
  }
}
// [/use]

Task<> async_main(int read_end, int write_end) {
  Scope& scope = co_await current_scope();
  StartedTask<> reader = read_all(read_end).start(scope);
  co_await yield();  // the reader waits now
  reader.cancel();   // and goes on waiting: its thread is inside read()
  if (::write(write_end, "late", 4) != 4) throw std::runtime_error("write failed");
  Outcome<void> how = co_await reader.outcome();
  std::printf("cancelled: %s\n", how.is_cancelled() ? "yes, after the bytes were delivered" : "no");

  ::close(write_end);
  co_await read_all(read_end);
  std::printf("end of file\n");
}

int main() {
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  testing::ThreadLoop loop;
  run(loop, async_main(ends[0], ends[1]));
  ::close(ends[0]);
}
