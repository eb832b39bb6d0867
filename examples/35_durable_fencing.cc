// SPDX-License-Identifier: MIT
// Why a lock needs a token: a holder is paused past its lease, as by a debugger, a laptop's lid or a garbage collector. Somebody
// else has the lock when it wakes up, and it does not know. What it writes then is refused by a FenceGate.
//
// Run: build/release/examples/35_durable_fencing
// See: the paused one goes on, is refused, and is cancelled as soon as its loop runs again.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <latch>
#include <string>
#include <thread>

#include "weft/durable/engine.h"
#include "weft/durable/fence_gate.h"
#include "weft/durable/mutex.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// [resource]
// What the lock protects. It is asked by many, and knows the greatest token.
class Account {
 public:
  void deposit(const char* who, int amount, std::uint64_t token) {
    bool admitted = gate_.admit("account", token, [&] { balance_ += amount; });
    std::printf("%s: %d %s\n", who, amount, admitted ? "deposited" : "refused: the token is old");
  }
  int balance() const { return balance_; }

 private:
  durable::FenceGate gate_;
  int balance_ = 0;
};
// [/resource]

// What happens, in order, whatever the speed of the machine.
struct Story {
  Account account;
  std::latch first_has_it{1}, second_has_written{1};
};

Task<void> with_lock(std::string url, std::chrono::milliseconds lease,
                     std::function<Task<void>(const durable::Mutex&)> use) {
  auto body = [&](durable::Engine& engine) -> Task<void> {
    durable::MutexOptions options{.resource_id = "account", .lease = lease};
    durable::Mutex lock = or_throw(co_await durable::Mutex::open(engine, std::move(options)));
    co_await use(lock);
  };
  or_throw(co_await durable::with_engine(std::move(url), body));
}

// [paused]
Task<void> first(Story& story, const durable::Mutex& lock) {
  auto section = [&](durable::LockContext& held) -> Task<void> {
    story.account.deposit("first", 10, held.fencing_token());
    story.first_has_it.count_down();
    story.second_has_written.wait();  // blocks the thread: nobody renews the lease meanwhile
    std::printf("first: wakes up, and goes on\n");
    story.account.deposit("first", 100, held.fencing_token());
    co_await sleep_for(1h);  // as soon as its loop runs again it is cancelled: the lock is lost
    std::printf("first: is never here\n");
  };
  durable::LockResult<> done = co_await lock.on_acquire(section);
  std::printf("first: %s\n", done ? "done" : to_string(done.error().kind()));
}
// [/paused]

Task<void> second(Story& story, const durable::Mutex& lock) {
  auto section = [&](durable::LockContext& held) -> Task<void> {
    story.account.deposit("second", 1, held.fencing_token());
    co_return;
  };
  or_throw(co_await lock.on_acquire(section));
}

void run_first(Story& story, const std::string& url) {
  EventLoop loop;
  auto use = [&](const durable::Mutex& lock) -> Task<void> { return first(story, lock); };
  run(loop, with_lock(url, 200ms, use));
}

void run_second(Story& story, const std::string& url) {
  story.first_has_it.wait();
  EventLoop loop;
  auto use = [&](const durable::Mutex& lock) -> Task<void> { return second(story, lock); };
  run(loop, with_lock(url, 10s, use));
  story.second_has_written.count_down();
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "weft.XXXXXX").string();
  if (!::mkdtemp(folder.data())) return 1;
  std::string url = "sqlite://" + folder + "/locks.db";
  Story story;
  std::thread other([&] { run_second(story, url); });
  run_first(story, url);
  other.join();
  std::printf("balance: %d\n", story.account.balance());
  std::filesystem::remove_all(folder);
}
