// SPDX-License-Identifier: MIT
// Loops come and go: they end right after their last task, with kicks under way, while others
// cancel into them and wait on them.
#include <deque>

#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;
using weft::testing::ThreadLoop;

constexpr CancelReason kWhy{"the storm said so"};

Task<int> short_lived(Random random) {
  Life life;
  FrameTally::touch();
  if (random.one_in(2)) co_await yields(static_cast<int>(random.below(3)));
  if (random.one_in(3)) co_await suspend_forever();
  co_return 1;
}
Task<void> short_child(Random random) { static_cast<void>(co_await short_lived(random)); }

// Somebody else's loop: calls what is posted, until it is stopped.
class TinyLoop {
 public:
  using Call = std::pair<void (*)(void*), void*>;
  TinyLoop() = default;
  TinyLoop(const TinyLoop&) = delete;
  TinyLoop& operator=(const TinyLoop&) = delete;
  ~TinyLoop() {
    for (auto& [fn, context] : calls_) fn(context);
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (stopped_ = false; !stopped_;) {
      bell_.wait(lock, [&] { return !calls_.empty(); });
      auto [fn, context] = calls_.front();
      calls_.pop_front();
      lock.unlock();
      fn(context);
      lock.lock();
    }
  }
  void stop() { stopped_ = true; }
  void post(Call call) {
    std::lock_guard lock(mutex_);
    calls_.push_back(call);
    bell_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable bell_;
  std::deque<Call> calls_;
  bool stopped_ = false;  // by a callback, hence on the loop's own thread
};

}  // namespace

template <>
struct weft::EventLoopTraits<TinyLoop> {
  static void run(TinyLoop& loop) { loop.run(); }
  static void stop(TinyLoop& loop) { loop.stop(); }
  static bool is_running(TinyLoop&) noexcept { return false; }
  static EventLoopID event_loop_id(TinyLoop& loop) { return EventLoopID(&loop); }
  static void post(TinyLoop& loop, void (*fn)(void*), void* context) { loop.post({fn, context}); }
};

namespace {

class LoopChurn : public StressTest {
 protected:
  // Cancels whatever is put there, for as long as it lives.
  class Cancellers {
   public:
    Cancellers(std::size_t count, Random random) {
      for (std::size_t i = 0; i < count; ++i) {
        threads_.emplace_back([this, mine = random.split()]() mutable {
          FrameTally::touch();
          while (!over_.load(std::memory_order_relaxed)) {
            auto handle = handles.swap(nullptr, mine);
            if (handle) {
              handle->cancel(kWhy);
            } else {
              std::this_thread::yield();
            }
          }
        });
      }
    }
    Cancellers(const Cancellers&) = delete;
    Cancellers& operator=(const Cancellers&) = delete;
    ~Cancellers() {
      over_ = true;
      for (auto& thread : threads_) thread.join();
    }
    Exchange<CancelHandle, 8> handles;

   private:
    std::atomic<bool> over_{false};
    std::vector<std::thread> threads_;
  };
};

// Leaves handles to its children with the cancellers.
template <class Cancellers>
Task<void> exposed_root(Cancellers& cancellers, Random random) {
  Life life;
  for (unsigned n = 1 + random.below(3); n > 0; --n) {
    books().started();
    auto handle = short_lived(random.split()).start_in_current_scope();
    static_cast<void>(
        cancellers.handles.swap(std::make_unique<CancelHandle>(handle.cancel_handle()), random));
    if (random.one_in(2)) co_await yield();
  }
}

// The loop is destroyed as soon as run() returns: a husk that waits for its kick must hold it.
TEST_F(LoopChurn, ALoopEndsAfterTheLastKickUnderWay) {
  Random mine = random(1);
  Cancellers cancellers(1, mine.split());
  for (std::size_t n = rounds(100'000); n > 0; --n) {
    ThreadLoop loop;
    books().started();
    run(loop, exposed_root(cancellers, mine.split()));
    EXPECT_EQ(loop.strand_count(), 0u);
    round();
  }
}

TEST_F(LoopChurn, LoopThreadsComeAndGoWhileOthersCancelIntoThem) {
  Random mine = random(2);
  Cancellers cancellers(2, mine.split());
  LoopThread steady;
  constexpr std::size_t kTasksPerLoop = 20;
  for (std::size_t n = rounds(60'000) / kTasksPerLoop; n > 0; --n) {
    LoopThread here;
    std::vector<StartedTask<int>> kept;
    for (std::size_t i = 0; i < kTasksPerLoop; ++i) {
      books().started();
      auto handle = short_lived(mine.split()).start_with_parent_scope(here.lease());
      static_cast<void>(
          cancellers.handles.swap(std::make_unique<CancelHandle>(handle.cancel_handle()), mine));
      switch (mine.below(4)) {
        case 0:
          kept.push_back(std::move(handle));  // dropped after the loop has been told to end
          break;
        case 1: {  // waited for by a loop that stays
          books().started();
          auto wait = [](StartedTask<int> other) -> Task<void> {
            Life life;
            FrameTally::touch();
            static_cast<void>(co_await other.outcome());
          };
          steady.lease().start(wait(std::move(handle)));
          break;
        }
        case 2:  // parked ones are cancelled by ~LoopThread
          handle.detach();
          break;
        default:
          break;
      }
      round();
    }
    books().started();
    here.lease().start([](Random random) -> Task<void> {
      Life life;
      FrameTally::touch();
      books().started();
      co_await short_child(random);
    }(mine.split()));
    if (mine.one_in(2)) kept.clear();
  }
  wait_until_all_ended();
}

TEST_F(LoopChurn, ALoopOfAnotherKindEndsAfterTheLastKickUnderWay) {
  Random mine = random(3);
  Cancellers cancellers(1, mine.split());
  for (std::size_t n = rounds(60'000); n > 0; --n) {
    TinyLoop loop;
    books().started();
    run(loop, exposed_root(cancellers, mine.split()));
    round();
  }
}

}  // namespace
