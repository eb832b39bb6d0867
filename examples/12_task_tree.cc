// SPDX-License-Identifier: MIT
// What is everybody waiting for? The tree of tasks as text, while it lives.
//
// Run: build/release/examples/12_task_tree
// See: each task, what it awaits and where, names given by annotate(), and why a task was cancelled.
#include <chrono>
#include <cstdio>
#include <string>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// Compilers spell a function's name differently: this prints the place without it.
void print(const std::string& tree) {
  for (size_t at = 0; at < tree.size();) {
    size_t end = tree.find('\n', at);
    std::string line = tree.substr(at, end - at);
    size_t in = line.find(" in "), where = line.rfind(" at ");
    if (in != line.npos && where != line.npos) line.erase(in, where - in);
    std::printf("  %s\n", line.c_str());
    at = end + 1;
  }
}

// [tasks]
Task<> query() { co_await sleep_for(10s); }

Task<> handle_request() { co_await annotate("SELECT", query()); }

Task<> lingers() { co_await suspend_forever(); }

Task<> slow_to_stop() { co_await noncancellable(sleep_for(10s)); }

Task<> service() {
  auto body = [](Nursery& n) -> Task<NurseryEnd> {
    n.start(handle_request());
    n.start(lingers());
    co_return join;
  };
  co_await with_nursery(body);
}
// [/tasks]

constexpr CancelReason kShutdown{"the service shuts down"};

Task<> async_main() {
  // [tree]
  Scope& scope = co_await current_scope();
  StartedTask<> serving = service().start(scope);
  StartedTask<> stubborn = slow_to_stop().start(scope);
  co_await sleep_for(1s);
  std::printf("running:\n");
  print(task_tree(scope));

  stubborn.cancel(kShutdown);
  co_await sleep_for(1s);
  std::printf("one is being cancelled:\n");
  print(task_tree(scope));
  // [/tree]
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
