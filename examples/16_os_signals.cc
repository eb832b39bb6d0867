// SPDX-License-Identifier: MIT
// Signals of the operating system, awaited.
//
// Run: build/release/examples/16_os_signals
// See: a program that signals itself, hears of it, and ends by its own Ctrl-C.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "weft/weft.h"

using namespace weft;

Task<> async_main() {
  // [set]
  SignalSet signals({SIGHUP, SIGUSR1});
  ::kill(::getpid(), SIGUSR1);  // as `kill -USR1` would
  ::kill(::getpid(), SIGHUP);
  for (int i = 0; i < 2; ++i) {
    int which = co_await signals.next();
    std::printf("%s\n", which == SIGHUP ? "reload" : "report");
  }
  // [/set]

  std::printf("Ctrl-C\n");
  ::kill(::getpid(), SIGINT);  // nobody listens to this one: the context stops
  co_await suspend_forever();
}

int main() {
  IOContext ctx{{.workers = 2}};
  ctx.run(async_main());
  std::printf("the end, by way of main()\n");
}
