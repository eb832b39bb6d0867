// SPDX-License-Identifier: MIT
// A nursery: children that run beside each other, joined before the block is left.
//
// Run: build/release/examples/02_nursery
// See: three children that end in the order of their sleeps; one that fails and takes its siblings
//      along; a nursery whose body asks for an early end. Time is virtual, so nothing is waited for.
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

long long milliseconds() { return now().time_since_epoch() / 1ms; }

struct Farewell {
  explicit Farewell(std::string who) : name(std::move(who)) {}
  ~Farewell() { std::printf("%4lld ms  %s is gone\n", milliseconds(), name.c_str()); }
  std::string name;
};

Task<> fetch(std::string name, std::chrono::milliseconds cost) {
  co_await sleep_for(cost);
  std::printf("%4lld ms  %s is here\n", milliseconds(), name.c_str());
}

Task<> serve(std::string name) {
  Farewell farewell(name);
  co_await suspend_forever();
}

Task<> fail_after(std::chrono::milliseconds when) {
  co_await sleep_for(when);
  throw std::runtime_error("the disk is full");
}

Task<> async_main() {
  // [nursery]
  int started = 0;  // a local of the caller: the nursery is over before it is
  auto three = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(fetch("carrots", 30ms));
    n.start(fetch("apples", 10ms));
    n.start(fetch("bread", 20ms));
    started = 3;
    co_return join;
  };
  co_await with_nursery(three);
  std::printf("%4lld ms  all %d have ended\n\n", milliseconds(), started);
  // [/nursery]

  // [failure]
  auto one_fails = [](Nursery& n) -> Task<NurseryEnd> {
    n.start(serve("server"));  // waits for ever
    n.start(fail_after(5ms));  // throws: the server is cancelled and its destructors run
    co_return join;            // the block is left when both have ended
  };
  try {
    co_await with_nursery(one_fails);
  } catch (const std::runtime_error& error) {
    std::printf("%4lld ms  caught: %s\n\n", milliseconds(), error.what());
  }
  // [/failure]

  auto brief = [](Nursery& n) -> Task<NurseryEnd> {
    n.start(serve("background"));
    co_await sleep_for(7ms);
    co_return cancel;  // the work is done; what still runs is cancelled, then joined
  };
  co_await with_nursery(brief);
  std::printf("%4lld ms  the end\n", milliseconds());
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
