// SPDX-License-Identifier: MIT
// A small service to look at while it runs: weavers that tick, a foreman that joins them.
//
// Run: script/demo, or build/release/examples/live
// See: kill -USR1 <pid> prints the tree of its tasks, worker by worker; Ctrl-C ends it, and every
//      task says goodbye on the way out.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

std::atomic<int> threads_woven = 0;

Task<> weave(std::string name) {
  struct Goodbye {
    explicit Goodbye(std::string& of) : name(of) {}
    ~Goodbye() { std::printf("%s puts the shuttle down\n", name.c_str()); }
    std::string& name;
  } goodbye(name);
  Interval every(100ms);
  for (;;) {
    static_cast<void>(co_await every.tick());
    ++threads_woven;
  }
}

Task<> loom(int number) {
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    for (const char* side : {"left", "right"}) {
      std::string name = "weaver " + std::to_string(number) + " " + side;
      n.schedule(weave(std::move(name)));
    }
    co_return join;
  };
  co_await with_nursery(body);
}

Task<> report(IOContext& ctx) {
  SignalSet signals({SIGUSR1});
  for (;;) {
    static_cast<void>(co_await signals.next());
    std::string tree = co_await ctx.task_tree();
    std::printf("%sthreads woven so far: %d\n", tree.c_str(), threads_woven.load());
    std::fflush(stdout);
  }
}

Task<> foreman(IOContext& ctx) {
  auto body = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(report(ctx));
    for (int i = 1; i <= 3; ++i) n.schedule(loom(i));
    std::printf("process %d: kill -USR1 %d prints the tree of tasks, Ctrl-C ends it\n", ::getpid(),
                ::getpid());
    std::fflush(stdout);
    co_return join;
  };
  co_await with_nursery(body);
}

int main() {
  IOContext ctx{{.workers = 2}};
  ctx.run(foreman(ctx));  // SIGINT and SIGTERM stop the context by themselves
  std::printf("the cloth is done: %d threads\n", threads_woven.load());
}
