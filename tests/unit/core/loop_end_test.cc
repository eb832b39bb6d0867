// SPDX-License-Identifier: MIT
// The end of a run() against what comes at that very moment: posts, guests, stop().
#include <atomic>
#include <functional>
#include <thread>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;
using weft::testing::VirtualLoop;

// Posts itself to a loop when it dies: the last thing that a run() finds in its inbox.
class LastPost : Runnable {
 public:
  LastPost(Executor& loop, std::function<void()> fn)
      : Runnable([](Runnable& self) noexcept { static_cast<LastPost&>(self).fn_(); }),
        loop_(loop),
        fn_(std::move(fn)) {}
  void send() { EXPECT_TRUE(loop_.post(*this)); }

 private:
  Executor& loop_;
  std::function<void()> fn_;
};
class SendAtEnd {
 public:
  explicit SendAtEnd(LastPost& post) : post_(post) {}
  SendAtEnd(const SendAtEnd&) = delete;
  SendAtEnd& operator=(const SendAtEnd&) = delete;
  ~SendAtEnd() { post_.send(); }

 private:
  LastPost& post_;
};
Task<void> send_at_end(LastPost& post) {
  SendAtEnd at_end(post);
  co_return;
}
Task<void> parked() { co_await suspend_forever(); }

class LoopEnd : public ::testing::Test {
 protected:
  LoopThread elsewhere;
  ThreadLoop loop;
  StartedTask<void> guest;
};

TEST_F(LoopEnd, StopReachesAGuestThatTheLastPostHasStarted) {
  for (bool from_another_thread : {false, true}) {
    LastPost post(loop, [&] {
      guest = parked().start_immediate_with_parent_scope(elsewhere.lease());
      if (from_another_thread) {
        std::thread([&] { loop.stop(); }).join();
      } else {
        loop.stop();
      }
    });
    run_on(loop, send_at_end(post));  // returns
    guest = {};
  }
}

TEST_F(LoopEnd, ALeaseOfAGuestThatTheLastPostHasStartedWorks) {
  bool ran = false;
  PromiseChildLease inner;
  auto host = [&]() -> Task<void> {
    inner = (co_await current_scope()).lease();
    co_await sleep_for(1us);
  };
  auto child = [&]() -> Task<void> {
    ran = true;
    co_return;
  };
  LastPost post(loop, [&] {
    guest = host().start_immediate_with_parent_scope(elsewhere.lease());
    inner.start(child());
    inner.reset();
  });
  run_on(loop, send_at_end(post));
  EXPECT_TRUE(ran);
}

// As its destructor runs in a run() that was stopped.
class StartsAGuest {
 public:
  StartsAGuest(PromiseChildLease lease, StartedTask<void>& into)
      : lease_(std::move(lease)), into_(into) {}
  StartsAGuest(const StartsAGuest&) = delete;
  StartsAGuest& operator=(const StartsAGuest&) = delete;
  ~StartsAGuest() { into_ = parked().start_immediate_with_parent_scope(std::move(lease_)); }

 private:
  PromiseChildLease lease_;
  StartedTask<void>& into_;
};

TEST_F(LoopEnd, AGuestThatIsStartedAtOnceOnAStoppedLoopIsCancelledFromItsStart) {
  auto body = [&]() -> Task<void> {
    StartsAGuest late(elsewhere.lease(), guest);
    loop.stop();
    co_await suspend_forever();
  };
  EXPECT_THROW(run_on(loop, body()), TaskCancelled);
}

// stop() beside runs that begin and end: each ends one run at most.
TEST_F(LoopEnd, OneStopEndsOneRun) {
  constexpr int kRounds = kSanitized ? 3'000 : 20'000;
  std::atomic<int> asked = 0;
  std::atomic<int> done = 0;
  std::jthread stopper([&](std::stop_token end) {
    for (int round = 1; round <= kRounds; ++round) {
      while (asked.load() < round) {
        if (end.stop_requested()) return;
        std::this_thread::yield();
      }
      loop.stop();
      done.store(round);
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    asked.store(round);
    int ended = 0;
    for (int after = 0; after < 3;) {
      if (done.load() == round) ++after;
      try {
        run_on(loop, yields(1));
      } catch (const TaskCancelled&) {
        ++ended;
      }
    }
    ASSERT_LE(ended, 1) << "in round " << round;
  }
}

TEST(LoopEndVirtual, AStopThatNoRunAnswersEndsWithTheLoop) {
  VirtualLoop loop;
  loop.stop();
}

}  // namespace
