// SPDX-License-Identifier: MIT
// A lock between processes: who has it runs, the others wait or are told. Here the processes are two engines on one file.
//
// Run: build/release/examples/34_durable_lock
// See: three settle an order, one at a time and with rising tokens; what becomes of errors; and who cannot wait.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "weft/durable/engine.h"
#include "weft/durable/mutex.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// [acquire]
Task<int> settle(const char* who, durable::LockContext& held) {
  std::printf("%s has %s, token %llu\n", who, held.resource_id().c_str(),
              static_cast<unsigned long long>(held.fencing_token()));
  co_await sleep_for(1ms);
  co_return 42;
}

Task<void> use(const char* who, const durable::Mutex& lock) {
  auto section = [who](durable::LockContext& held) -> Task<int> { return settle(who, held); };
  durable::LockResult<int> sum = co_await lock.on_acquire(section);
  if (!sum) std::printf("%s: %s\n", who, sum.error().what());
}
// [/acquire]

// [errors]
Task<void> errors(const durable::Mutex& lock) {
  auto fails = [](durable::LockContext&) -> Task<void> {
    co_await yield();
    throw std::runtime_error("no such order");  // passes through, after the lock was given back
  };
  try {
    static_cast<void>(co_await lock.on_acquire(fails));
  } catch (const std::runtime_error& error) {
    std::printf("the function's own: %s\n", error.what());
  }
}
// [/errors]

// [busy]
Task<void> cannot_wait(const durable::Mutex& here, const durable::Mutex& elsewhere) {
  auto outer = [&](durable::LockContext&) -> Task<void> {
    auto inner = [](durable::LockContext&) -> Task<void> { co_return; };
    durable::LockResult<> tried = co_await elsewhere.try_acquire(inner);
    std::printf("%s\n", tried ? "ours" : tried.error().what());
    durable::LockResult<> waited = co_await elsewhere.on_acquire_within(200ms, inner);
    std::printf("%s\n", waited ? "ours" : waited.error().what());
  };
  or_throw(co_await here.on_acquire(outer));
}
// [/busy]

// [open]
Task<void> two_processes(std::string url) {
  auto second = [&](durable::Engine& here, durable::Engine& there) -> Task<void> {
    durable::MutexOptions options{.resource_id = "orders/42"};
    durable::Mutex lock = or_throw(co_await durable::Mutex::open(here, options));
    durable::Mutex other = or_throw(co_await durable::Mutex::open(there, options));
    co_await all_of(use("one", lock), use("two", lock), use("three", lock));
    co_await errors(lock);
    co_await cannot_wait(lock, other);
  };
  auto first = [&](durable::Engine& here) -> Task<void> {
    auto body = [&](durable::Engine& there) -> Task<void> { return second(here, there); };
    or_throw(co_await durable::with_engine(url, body));
  };
  or_throw(co_await durable::with_engine(url, first));
}
// [/open]

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "weft.XXXXXX").string();
  if (!::mkdtemp(folder.data())) return 1;
  EventLoop loop;
  run(loop, two_processes("sqlite://" + folder + "/locks.db"));
  std::filesystem::remove_all(folder);
}
