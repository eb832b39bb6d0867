// SPDX-License-Identifier: MIT
// Contexts of up to eight workers whose tasks schedule, cancel, move, sleep, block and do I/O at
// random, while other threads schedule, cancel and stop. Every task is accounted for: it ran, or was
// cancelled, or was never begun because nobody ran the context again.
//
// WEFT_STRESS_SECONDS says for how long (script/test soak: ten minutes); WEFT_SEED and
// WEFT_CHAOS_SEED name a run.
#include <sys/socket.h>

#include <chrono>
#include <optional>

#include "support/stress.h"
#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using namespace weft::test;

std::chrono::seconds stress_time() {
  const char* given = std::getenv("WEFT_STRESS_SECONDS");
  return std::chrono::seconds(given ? std::strtoul(given, nullptr, 10) : 8);
}

using Handles = Exchange<CancelHandle, 16>;
Handles& handles() {
  static Handles all;
  return all;
}

class Storm {
 public:
  Storm(IOContext& ctx, bool stoppable) : ctx_(ctx), stoppable_(stoppable) {}

  Task<void> root(Random random) {
    Ticket ticket;
    return body(std::move(ticket), random, 2);
  }

 private:
  EventLoop& any_loop(Random& random) {
    return ctx_.loop(random.below(static_cast<unsigned>(ctx_.workers())));
  }
  Task<void> child(Random random, int depth) {
    Ticket ticket;
    return body(std::move(ticket), random, depth);
  }

  Task<void> body(Ticket ticket, Random random, int depth) {
    Wanderer life;
    ticket.begun();
    for (unsigned steps = 1 + random.below(4); steps > 0; --steps) {
      co_await step(random, depth);
      books().rounds_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  Task<void> step(Random& random, int depth) {
    switch (random.below(depth > 0 ? 14 : 7)) {
      case 0:
        co_await resume_on(any_loop(random));
        break;
      case 1:
        co_await sleep_for(std::chrono::microseconds(random.below(300)));
        break;
      case 2: {
        unsigned spins = random.below(2000);
        auto work = [spins](StopToken stop) {
          FrameTally::touch();
          volatile unsigned count = 0;
          while (count < spins && !stop.stop_requested()) count = count + 1;
        };
        co_await blocking(work);
        break;
      }
      case 3:
        co_await talk(random);
        break;
      case 4: {
        auto nap = sleep_for(1h);
        static_cast<void>(
            co_await timeout(std::chrono::microseconds(random.below(200)), std::move(nap)));
        break;
      }
      case 5:
        if (stoppable_ && random.one_in(200)) ctx_.stop();
        co_await yield();
        break;
      case 6: {
        std::unique_ptr<CancelHandle> other = handles().swap(nullptr, random);
        if (other) other->cancel();
        break;
      }
      case 7:
      case 8:
        ctx_.schedule(child(random.split(), depth - 1));
        break;
      case 9:
      case 10:
        co_await nursery(random, depth);
        break;
      case 11:
        co_await on(any_loop(random), child(random.split(), depth - 1));
        break;
      case 12: {
        auto handle = child(random.split(), depth - 1).start_in_current_scope();
        handles().swap(std::make_unique<CancelHandle>(handle.cancel_handle()), random);
        static_cast<void>(co_await handle.outcome());
        break;
      }
      default:
        co_await any_of(on(any_loop(random), child(random.split(), depth - 1)),
                        sleep_for(std::chrono::microseconds(random.below(100))));
        break;
    }
  }

  Task<void> nursery(Random& random, int depth) {
    auto open = [&](Nursery& n) -> Task<NurseryEnd> {
      for (unsigned count = 1 + random.below(6); count > 0; --count) {
        switch (random.below(3)) {
          case 0:
            n.start(child(random.split(), depth - 1));
            break;
          case 1:
            n.start_on(any_loop(random), child(random.split(), depth - 1));
            break;
          default:
            n.schedule(child(random.split(), depth - 1));
            break;
        }
      }
      if (random.one_in(3)) co_await yield();
      co_return random.one_in(2) ? cancel : join;
    };
    co_await with_nursery(open);
  }

  // Bytes through a socket pair, or a read that nobody answers, cut short.
  Task<void> talk(Random& random) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) co_return;
    Descriptor here{UniqueFd(pair[0])}, there{UniqueFd(pair[1])};
    std::byte buffer[16] = {};
    if (random.one_in(3)) {
      auto silent = here.read(std::span(buffer));
      static_cast<void>(co_await timeout(100us, std::move(silent)));
      co_return;
    }
    Result<std::size_t> written = co_await there.write(std::span(buffer));
    EXPECT_TRUE(written);
    for (std::size_t count = 0; written && count < *written;) {
      Result<std::size_t> got = co_await here.read(std::span(buffer));
      EXPECT_TRUE(got && *got > 0);
      if (!got || *got == 0) break;
      count += *got;
    }
  }

  IOContext& ctx_;
  const bool stoppable_;
};

class RuntimeStress : public StressTest {
 protected:
  static constexpr Driver kDrivers[] = {Driver::automatic, Driver::epoll, Driver::poll};

  // One context, run up to three times.
  void one_context(Random random, bool stoppable) {
    unsigned workers = stoppable ? 1 + random.below(8) : 8;
    IOContext ctx{{.workers = workers,
                   .driver = kDrivers[random.below(3)],
                   .blocking = {.threads_max = 1 + random.below(4)}}};
    for (unsigned runs = 1 + random.below(3); runs > 0; --runs) {
      Storm storm(ctx, stoppable);
      std::atomic<bool> over = false;
      Random outside = random.split();
      std::thread other([&] {
        FrameTally::touch();
        for (int i = 0; i < 40 && !over; ++i) {
          ctx.schedule(storm.root(outside.split()));
          outside.dawdle();
          if (stoppable && outside.one_in(100)) ctx.stop();
          if (auto handle = handles().swap(nullptr, outside)) handle->cancel();
        }
      });
      Random inside = random.split();
      auto main = [&]() -> Task<void> {
        FrameTally::touch();
        for (int i = 0; i < 40; ++i) ctx.schedule(storm.root(inside.split()));
        co_return;
      };
      ctx.run(main());
      over = true;
      other.join();
      handles().clear();
    }
  }

  void storm_for(std::chrono::seconds time, bool stoppable) {
    auto until = std::chrono::steady_clock::now() + time;
    for (std::uint64_t i = 0; std::chrono::steady_clock::now() < until; ++i) {
      // On a thread of its own, so that its frames are counted when it exits.
      std::thread runner([&] {
        FrameTally::touch();
        one_context(random(i + 1), stoppable);
      });
      runner.join();
    }
  }
};

TEST_F(RuntimeStress, EightWorkersEverythingJoined) { storm_for(stress_time() / 2, false); }
TEST_F(RuntimeStress, StoppedAtAnyTime) { storm_for(stress_time() / 2, true); }

}  // namespace
