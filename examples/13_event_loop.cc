// SPDX-License-Identifier: MIT
// An EventLoop: timers and descriptors, all awaited, on one thread.
//
// Run: build/release/examples/13_event_loop
// See: lines that one task writes into a pipe, with pauses, and another reads at its other end.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <span>
#include <string>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [pipe]
Task<> writer(Descriptor out) {
  for (std::string line : {"warp\n", "weft\n", "cloth\n"}) {
    co_await sleep_for(2ms);
    or_throw(co_await out.write(std::as_bytes(std::span(line))));
  }
}  // its end of the pipe closes here: the reader sees the end

Task<> reader(Descriptor in) {
  std::byte buffer[64];
  for (;;) {
    std::size_t count = or_throw(co_await in.read(buffer));
    if (count == 0) break;
    std::printf("read: %.*s", static_cast<int>(count), reinterpret_cast<char*>(buffer));
  }
  std::printf("the end\n");
}
// [/pipe]

Task<> async_main() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  co_await all_of(reader(Descriptor(UniqueFd(ends[0]))), writer(Descriptor(UniqueFd(ends[1]))));
}

int main() {
  EventLoop loop;
  run(loop, async_main());
}
