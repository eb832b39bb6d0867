// SPDX-License-Identifier: MIT
// weft on libuv: its requests as awaitables, its thread pool and its timers under one task.
//
// Run: build/release/examples/21_libuv
// See: a file that libuv's thread pool reads; a timeout; and blocking work that goes on in the pool
//      while other tasks run.
#include <fcntl.h>
#include <uv.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "weft/adapt/libuv_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [request]
// libuv calls back with the request, which carries who waits. uv_cancel() does not end the wait:
// the callback comes in any case, and the request must live until then. So: false.
template <class Request, class Start>
Task<> finished(Request& request, Start start) {
  std::function<void()> done;
  request.data = &done;
  auto begin = [&](auto callback) {
    done = callback;
    start();
  };
  auto cancel = [&] {
    uv_cancel(reinterpret_cast<uv_req_t*>(&request));
    return false;
  };
  co_await until_callback(begin, cancel);
}
template <class Request>
void call_back(Request* request) {
  (*static_cast<std::function<void()>*>(request->data))();
}

Task<std::string> read_first_bytes(uv_loop_t& loop, const char* path) {
  std::array<char, 6> bytes;
  uv_buf_t buffer = uv_buf_init(bytes.data(), bytes.size());
  uv_fs_t open, read, close;
  auto opening = [&] { uv_fs_open(&loop, &open, path, O_RDONLY, 0, call_back<uv_fs_t>); };
  co_await finished(open, opening);
  uv_file file = static_cast<uv_file>(open.result);
  auto reading = [&] { uv_fs_read(&loop, &read, file, &buffer, 1, 0, call_back<uv_fs_t>); };
  co_await finished(read, reading);
  auto closing = [&] { uv_fs_close(&loop, &close, file, call_back<uv_fs_t>); };
  co_await finished(close, closing);
  for (uv_fs_t* request : {&open, &read, &close}) uv_fs_req_cleanup(request);
  co_return std::string(bytes.data(), read.result > 0 ? read.result : 0);
}
// [/request]

Task<> slow_work(uv_loop_t& loop) {
  uv_work_t work;
  auto start = [&] {
    auto blocks = [](uv_work_t*) { std::this_thread::sleep_for(60ms); };
    uv_queue_work(&loop, &work, blocks, [](uv_work_t* w, int) { call_back(w); });
  };
  co_await finished(work, start);
}

Task<> async_main(uv_loop_t& loop) {
  std::string text = co_await read_first_bytes(loop, "/proc/self/status");
  std::printf("libuv read: %s\n", text.substr(0, 5).c_str());

  auto late = co_await timeout(5ms, suspend_forever());
  std::printf("libuv timed: %s\n", late ? "?" : "a timeout");

  int ticks = 0;
  auto tick = [&]() -> Task<> {
    for (;; ++ticks) co_await sleep_for(2ms);
  };
  co_await with(tick, slow_work(loop));
  std::printf("libuv worked: %s meanwhile\n", ticks > 1 ? "other tasks ran" : "nothing ran");
}

int main() {
  uv_loop_t loop;
  uv_loop_init(&loop);
  run(loop, async_main(loop));
  return uv_loop_close(&loop);  // 0: weft has left nothing in it
}
