// SPDX-License-Identifier: MIT
// Seed 000's three cancels, raced: waiters of a Mutex are cancelled from another loop than their own
// while the lock goes from hand to hand, so that the cancel finds them Waiting, Notified or Resumed.
// How often it found which is counted. In every room
//
//   - one is inside at a time and nobody at the end: the lock was neither doubled nor lost;
//   - nobody goes in before one who came earlier and still waits, of its own loop or of another;
//   - every waiter went in or was withdrawn, and ended as its cancel found it.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <span>

#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::LoopThread;

constexpr std::size_t kRaces = rounds(1'000'000);
// Of each state, so that none is a race in name only.
constexpr std::size_t kHitsMin = kRaces / 100;

constexpr std::size_t kLoops = 3;
constexpr std::size_t kVisitors = 6;
constexpr std::size_t kRoomsPerLoop = 16;

// What a cancel found. `no_wait`: nothing to end, because there was no cancel, or it came before the
// wait or after all.
enum class Found : std::uint8_t { no_wait, waiting, notified };

// One wait for a room. Its home loop writes it; the host reads it when the task has ended.
struct Visit {
  std::size_t home = 0;
  bool is_cancelled = false;
  bool stays = false;  // inside until the cancel comes
  bool waited = false;
  bool entered = false;
  Found found = Found::no_wait;
  std::uint64_t number = 0;           // among those of its home, in the order of their coming
  std::uint64_t came = 0, stood = 0;  // stamps from before and after it joined the queue
};

// Stamps order the queue across loops, and by that what tasks did before they came, which a sanitizer
// would not miss any more: so half of the rooms do without.
enum class Stamps : bool { no, yes };

struct Room {
  explicit Room(Stamps stamps) noexcept : stamps(stamps) {}

  std::uint64_t stamp(std::memory_order order) noexcept {
    return stamps == Stamps::yes ? clock.fetch_add(1, order) + 1 : 0;
  }

  Mutex mutex{"raced"};
  const Stamps stamps;
  std::atomic<std::uint64_t> clock{0};
  std::array<Visit, kVisitors> visits;
  std::array<std::uint64_t, kLoops> numbers{};  // each its loop's

  // What follows is the owner's of the mutex.
  int inside = 0;
  std::uint64_t last_came = 0;
  std::array<std::uint64_t, kLoops> last_number{};
};

// mutex.lock(), and what a look over its shoulder shows.
class Arrival {
 public:
  using native_awaiter = void;
  Arrival(Room& room, Visit& visit) noexcept
      : room_(room), visit_(visit), lock_(room.mutex.lock().operator co_await()) {}

  bool await_ready() {
    visit_.number = ++room_.numbers[visit_.home];
    visit_.came = room_.stamp(std::memory_order_acquire);
    const bool locked = lock_.await_ready();
    if (locked) visit_.stood = room_.stamp(std::memory_order_release);
    return locked;
  }
  // Whoever notifies this one does so by a post to the loop that is busy here.
  bool await_suspend(detail::Continuation waiter) noexcept {
    visit_.waited = lock_.await_suspend(waiter);
    visit_.stood = room_.stamp(std::memory_order_release);
    return visit_.waited;
  }
  bool await_cancel(detail::Continuation waiter) noexcept {
    const bool at_once = lock_.await_cancel(waiter);
    visit_.found = at_once ? Found::waiting : Found::notified;
    return at_once;
  }
  [[nodiscard]] bool await_must_resume() const noexcept { return lock_.await_must_resume(); }
  MutexGuard await_resume() { return lock_.await_resume(); }
  void await_introspect(auto& tree) { lock_.await_introspect(tree); }

 private:
  using Lock = decltype(std::declval<Mutex&>().lock().operator co_await());

  Room& room_;
  Visit& visit_;
  Lock lock_;
};

// The time between the lock and the unlock.
class Inside {
 public:
  Inside(Room& room, Visit& visit) noexcept : room_(room) {
    visit.entered = true;
    EXPECT_EQ(++room.inside, 1);
    EXPECT_GT(visit.number, room.last_number[visit.home]) << "overtook one of its loop";
    room.last_number[visit.home] = visit.number;
    if (room.stamps == Stamps::no) return;
    EXPECT_GT(visit.stood, room.last_came) << "was overtaken by one of another loop";
    room.last_came = std::max(room.last_came, visit.came);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { EXPECT_EQ(--room_.inside, 0); }

 private:
  Room& room_;
};

class MutexRace : public StressTest {
 protected:
  MutexRace() {
    for (LoopThread& loop : loops_) watch_loop(&loop);
  }
  ~MutexRace() override { forget_loops(); }

  static Task<void> enter(Room& room, Visit& visit, Random random) {
    Wanderer life;
    MutexGuard lock = co_await make_awaitable<Arrival>(std::ref(room), std::ref(visit));
    Inside inside(room, visit);
    if (visit.stays) co_await suspend_forever();
    co_await yields(static_cast<int>(random.below(3)));
  }

  static Task<void> cancel_in_turn(Room& room, std::span<CancelHandle> visitors, Random random) {
    Wanderer life;
    const std::size_t first = random.below(kVisitors);
    for (std::size_t i = 0; i < kVisitors; ++i) {
      const std::size_t which = (first + i) % kVisitors;
      if (!room.visits[which].is_cancelled) continue;
      if (random.one_in(4)) co_await yield();
      random.dawdle();
      visitors[which].cancel();
    }
  }

  // Ends when all have gone.
  Task<void> host(Stamps stamps, Random& random) {
    Room room(stamps);
    MutexGuard lock = co_await room.mutex.lock();
    // Cancelled from here; so nobody waits here. The lock may be held here first, or where they wait.
    const std::size_t desk = random.below(kLoops);
    std::array<StartedTask<void>, kVisitors> tasks;
    std::array<CancelHandle, kVisitors> handles;
    for (std::size_t i = 0; i < kVisitors; ++i) {
      Visit& visit = room.visits[i];
      visit.home = (desk + 1 + random.below(kLoops - 1)) % kLoops;
      visit.is_cancelled = !random.one_in(4);
      visit.stays = visit.is_cancelled && random.one_in(3);
      books().started();
      tasks[i] =
          enter(room, visit, random.split()).start_with_parent_scope(loops_[visit.home].lease());
      handles[i] = tasks[i].cancel_handle();
    }
    co_await yields(static_cast<int>(random.below(16)));
    books().started();
    StartedTask<void> canceller =
        cancel_in_turn(room, handles, random.split()).start_with_parent_scope(loops_[desk].lease());
    co_await yields(static_cast<int>(random.below(4)));
    random.dawdle();
    lock.unlock();
    for (std::size_t i = 0; i < kVisitors; ++i) {
      Outcome<void> how = co_await tasks[i].outcome();
      account_for(room.visits[i], how.is_cancelled());
    }
    static_cast<void>(co_await canceller.outcome());
    EXPECT_FALSE(room.mutex.is_locked());
    EXPECT_EQ(room.inside, 0);
    round();
  }

  void account_for(const Visit& visit, bool ended_cancelled) {
    EXPECT_FALSE(visit.entered && visit.found != Found::no_wait) << "was withdrawn and went in";
    EXPECT_TRUE(visit.is_cancelled || !ended_cancelled);
    EXPECT_TRUE(visit.entered || ended_cancelled) << "was forgotten";
    if (visit.found == Found::waiting) {
      ++waiting_;
    } else if (visit.found == Found::notified) {
      ++notified_;
    } else if (visit.waited && visit.entered && ended_cancelled) {
      ++resumed_;
    }
  }

  [[nodiscard]] std::size_t hits() const noexcept {
    return waiting_.load(std::memory_order_relaxed) + notified_.load(std::memory_order_relaxed) +
           resumed_.load(std::memory_order_relaxed);
  }

  // Rooms one after the other, until there were races enough.
  Task<void> hosts(Stamps stamps, Random random) {
    Wanderer life;
    while (hits() < kRaces) co_await host(stamps, random);
  }

  LoopThread loops_[kLoops];
  std::atomic<std::size_t> waiting_{0}, notified_{0}, resumed_{0};
};

TEST_F(MutexRace, ACancelFromAnotherLoopFindsItWaitingNotifiedOrResumed) {
  for (std::size_t i = 0; i < kLoops * kRoomsPerLoop; ++i) {
    books().started();
    loops_[i % kLoops].lease().start(hosts(i % 2 == 0 ? Stamps::yes : Stamps::no, random(i + 1)));
  }
  wait_until_all_ended();
  std::printf("[   HITS   ] waiting %zu, notified %zu, resumed %zu\n", waiting_.load(),
              notified_.load(), resumed_.load());
  EXPECT_GE(hits(), kRaces);
  EXPECT_GE(waiting_, kHitsMin);
  EXPECT_GE(notified_, kHitsMin);
  EXPECT_GE(resumed_, kHitsMin);
}

}  // namespace
