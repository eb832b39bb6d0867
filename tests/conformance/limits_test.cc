// SPDX-License-Identifier: MIT
// Under pressure: no descriptors left, ten thousand of them, signals, silence, and no fairness.
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

#include "driver_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Limits : DriverTest {};
WEFT_ON_EVERY_DRIVER(Limits);

TEST_P(Limits, AListenerSurvivesThatThereAreNoDescriptors) {
  FileLimit few(64);
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    // The loop's own descriptors are made, and the listener is the loop's.
    auto accept = [&]() -> Task<Result<Descriptor>> {
      co_return co_await listener.socket.accept();
    };
    UniqueFd first = connect_to(listener.address);
    Result<Descriptor> works = co_await accept();
    EXPECT_TRUE(works.has_value());

    UniqueFd second = tcp_socket();
    int refused = 0;
    {
      Exhaustion exhaustion;
      checked(::connect(second.get(), &general(listener.address), sizeof(sockaddr_in)), "connect");
      auto until = std::chrono::steady_clock::now() + 300ms;
      auto cpu = thread_cpu();
      while (std::chrono::steady_clock::now() < until) {
        Result<Descriptor> accepted = co_await accept();
        EXPECT_TRUE(is_error(accepted, std::errc::too_many_files_open));
        ++refused;
      }
      // One at once, then one per kAcceptPause.
      EXPECT_GE(refused, 2);
      EXPECT_LE(refused, 9);
      EXPECT_LT(thread_cpu() - cpu, 100ms);
    }
    Result<Descriptor> recovered = co_await accept();
    EXPECT_TRUE(recovered.has_value());
    put(second, "still there");
    EXPECT_EQ(co_await read_at_least(*recovered, 11), "still there");
  });
}

TEST_P(Limits, AnAcceptThatPausesCanBeCancelledAndClosed) {
  FileLimit few(64);
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    auto accept = [&]() -> Task<Result<Descriptor>> {
      co_return co_await listener.socket.accept();
    };
    UniqueFd first = connect_to(listener.address);
    Result<Descriptor> works = co_await accept();
    UniqueFd second = tcp_socket();
    Exhaustion exhaustion;
    checked(::connect(second.get(), &general(listener.address), sizeof(sockaddr_in)), "connect");
    Result<Descriptor> refused = co_await accept();
    EXPECT_TRUE(is_error(refused, std::errc::too_many_files_open));
    StartedTask<Result<Descriptor>> paused = accept().start_in_current_scope();
    co_await settle();
    paused.cancel();
    Outcome<Result<Descriptor>> outcome = co_await paused.outcome();
    EXPECT_TRUE(outcome.is_cancelled());
    Result<Descriptor> again = co_await accept();
    EXPECT_FALSE(again.has_value());
    StartedTask<Result<Descriptor>> last = accept().start_in_current_scope();
    co_await settle();
    listener.socket.close();
    Result<Descriptor> closed = co_await std::move(last);
    EXPECT_TRUE(is_error(closed, std::errc::bad_file_descriptor));
  });
}

// A listener whose last accept() has met the limit; a connection to it still waits.
struct Exhausted {
  Listener listener = tcp_listener();
  UniqueFd client;
  std::optional<Exhaustion> exhaustion;

  Task<Result<Descriptor>> accept() { co_return co_await listener.socket.accept(); }
  Task<void> meet_the_limit() {
    UniqueFd first = connect_to(listener.address);
    Result<Descriptor> works = co_await accept();
    EXPECT_TRUE(works.has_value());
    client = tcp_socket();
    exhaustion.emplace();
    checked(::connect(client.get(), &general(listener.address), sizeof(sockaddr_in)), "connect");
    Result<Descriptor> refused = co_await accept();
    EXPECT_TRUE(is_error(refused, std::errc::too_many_files_open));
  }
};

TEST_P(Limits, AnAcceptThatPausesHoldsItsPlace) {
  FileLimit few(64);
  on_loop([]() -> Task<void> {
    Exhausted at;
    co_await at.meet_the_limit();
    StartedTask<Result<Descriptor>> paused = at.accept().start_in_current_scope();
    co_await settle();
    bool refused = false;
    try {
      static_cast<void>(co_await at.accept());
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    EXPECT_FALSE(paused.is_done());
    at.exhaustion.reset();
    Result<Descriptor> accepted = co_await std::move(paused);
    EXPECT_TRUE(accepted.has_value());
    put(at.client, "first come");
    EXPECT_EQ(co_await read_at_least(*accepted, 10), "first come");
  });
}

// While it paused, another task has begun to wait for the bare number: epoll takes a number once.
TEST_P(Limits, AnAcceptThatPausedAndCannotWaitIsBusy) {
  FileLimit few(64);
  on_loop([]() -> Task<void> {
    Exhausted at;
    co_await at.meet_the_limit();
    StartedTask<Result<Descriptor>> paused = at.accept().start_in_current_scope();
    auto borrow = [&]() -> Task<void> { or_throw(co_await writable(at.listener.socket.number())); };
    StartedTask<void> borrower = borrow().start_in_current_scope();
    co_await settle();
    at.exhaustion.reset();
    UniqueFd taken(checked(::accept4(at.listener.socket.number(), nullptr, nullptr, SOCK_CLOEXEC),
                           "accept4"));  // so that it has to wait
    EXPECT_FALSE(paused.is_done());
    if (GetParam() == Driver::epoll) {
      Result<Descriptor> busy = co_await std::move(paused);
      EXPECT_TRUE(is_error(busy, std::errc::device_or_resource_busy));
    } else {
      co_await sleep_for(Descriptor::kAcceptPause + 10ms);
      EXPECT_FALSE(paused.is_done());
      UniqueFd next = connect_to(at.listener.address);
      Result<Descriptor> accepted = co_await std::move(paused);
      EXPECT_TRUE(accepted.has_value());
    }
    borrower.cancel();
    static_cast<void>(co_await borrower.outcome());
  });
}

// poll() is O(n) in what is waited for, per turn: a tenth of them will do there.
std::size_t pairs_for(Driver driver) {
  std::size_t wanted = driver == Driver::poll ? 1'000 : 10'000;
  std::size_t possible = (FileLimit::now() - 200) / 2;
  if (possible < wanted) {
    std::printf("[  LIMITED ] RLIMIT_NOFILE allows only %zu pairs of %zu\n", possible, wanted);
  }
  return std::min(wanted, possible);
}

Task<void> read_once(Descriptor& from, std::size_t& sum) {
  std::byte buffer[8];
  Result<std::size_t> count = co_await from.read(buffer);
  sum += count.value_or(1'000'000);
}
Task<void> expect_closed(Descriptor& from, std::size_t& sum) {
  std::byte buffer[8];
  Result<std::size_t> count = co_await from.read(buffer);
  sum += is_error(count, std::errc::bad_file_descriptor);
}

TEST_P(Limits, TenThousandWaitAtOnce) {
  FileLimit many(20'400);
  std::size_t count = pairs_for(GetParam());
  on_loop([&]() -> Task<void> {
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < count; ++i) pairs.push_back(socket_pair());
    std::size_t sum = 0, closed = 0;
    auto write_to_all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (Pair& pair : pairs) nursery.start(read_once(pair.ours, sum));
      while (loop.statistics().operations < count) co_await yield();
      co_await settle();
      EXPECT_EQ(sum, 0u);
      for (Pair& pair : pairs) put(pair.theirs, "x");
      co_return join;
    };
    co_await with_nursery(write_to_all);
    EXPECT_EQ(sum, count);
    auto close_all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (Pair& pair : pairs) nursery.start(expect_closed(pair.ours, closed));
      while (loop.statistics().operations < count) co_await yield();
      co_await settle();
      for (Pair& pair : pairs) pair.ours.close();
      co_return join;
    };
    co_await with_nursery(close_all);
    EXPECT_EQ(closed, count);
    for (Pair& pair : pairs) EXPECT_EQ(get(pair.theirs), "");
  });
  EXPECT_EQ(loop.statistics().descriptors, 0u);
}

TEST_P(Limits, ThousandsAreCancelledAtOnce) {
  FileLimit many(20'400);
  std::size_t count = pairs_for(GetParam()) / 2;
  on_loop([&]() -> Task<void> {
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < count; ++i) pairs.push_back(socket_pair());
    std::size_t sum = 0;
    auto cancel_all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (Pair& pair : pairs) nursery.start(read_once(pair.ours, sum));
      while (loop.statistics().operations < count) co_await yield();
      co_await settle();
      co_return cancel;
    };
    co_await with_nursery(cancel_all);
    EXPECT_EQ(sum, 0u);
    for (Pair& pair : pairs) {
      put(pair.theirs, "kept");
      EXPECT_EQ(co_await read_at_least(pair.ours, 4), "kept");
    }
  });
}

// --- Silence ------------------------------------------------------------------------------------

// What a loop does with its time while nothing happens.
struct Idle {
  std::uint64_t sleeps;
  std::chrono::nanoseconds cpu;
};
Task<Idle> idle_for(EventLoop& loop, std::chrono::milliseconds duration) {
  std::uint64_t sleeps = loop.statistics().sleeps;
  auto cpu = thread_cpu();
  co_await sleep_for(duration);
  co_return Idle{loop.statistics().sleeps - sleeps, thread_cpu() - cpu};
}
void expect_calm(const Idle& idle) {
  EXPECT_LT(idle.sleeps, 30u);
  EXPECT_LT(idle.cpu, 50ms);
}

TEST_P(Limits, APeerThatHungUpDoesNotKeepTheLoopAwake) {
  on_loop([this]() -> Task<void> {
    Listener listener = tcp_listener();
    UniqueFd client = connect_to(listener.address);
    Result<Descriptor> accepted = co_await listener.socket.accept();
    Descriptor server = or_throw(std::move(accepted));
    put(client, "x");
    EXPECT_EQ(co_await read_text(server), "x");
    // Once waited for, so that the kernel was told of it.
    std::byte buffer[4];
    auto nothing = co_await timeout(2ms, server.read(buffer));
    EXPECT_FALSE(nothing.has_value());
    client.reset();  // and nobody waits
    Idle idle = co_await idle_for(loop, 150ms);
    expect_calm(idle);
    EXPECT_EQ(co_await read_text(server), "");
  });
}

TEST_P(Limits, AHalfClosedPeerDoesNotKeepAWriterAwake) {
  on_loop([this]() -> Task<void> {
    Pair pair = socket_pair();
    std::size_t filled = fill(pair.ours.number());
    StartedTask<void> writer = write_all(pair.ours, "x").start_in_current_scope();
    co_await settle();
    ::shutdown(pair.theirs.get(), SHUT_WR);
    Idle idle = co_await idle_for(loop, 150ms);
    expect_calm(idle);
    drain(pair.theirs, filled);
    co_await std::move(writer);
  });
}

TEST_P(Limits, BytesThatNobodyReadsDoNotKeepTheLoopAwake) {
  on_loop([this]() -> Task<void> {
    Pair pair = socket_pair();
    put(pair.theirs, "ab");
    EXPECT_EQ(co_await read_text(pair.ours, 1), "a");
    put(pair.theirs, std::string(10'000, 'c'));
    Idle idle = co_await idle_for(loop, 100ms);
    expect_calm(idle);
  });
}

TEST_P(Limits, EveryWakeUpIsHeard) {
  // Thousands of them, each for a loop that sleeps: none is lost, and none is said again for ever.
  std::atomic<int> wanted{0}, seen{0};
  std::atomic<bool> over{false};
  EventLoop& target = loop;
  std::thread waker;
  on_loop([&]() -> Task<void> {
    waker = std::thread([&] {
      for (int i = 1; i <= 2'000; ++i) {
        wanted = i;
        target.post([&] { seen.store(wanted.load()); });
        while (seen.load() < i) std::this_thread::yield();
      }
      over = true;
    });
    while (!over) co_await sleep_for(20ms);
    Idle idle = co_await idle_for(loop, 100ms);
    expect_calm(idle);
  });
  waker.join();
  EXPECT_EQ(seen.load(), 2'000);
}

// --- Signals ------------------------------------------------------------------------------------

TEST_P(Limits, ASignalStormInterruptsNothing) {
  struct sigaction quiet{}, before{};
  quiet.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &quiet, &before);  // no SA_RESTART: every call says EINTR
  std::atomic<bool> over{false};
  pthread_t loop_thread = ::pthread_self();
  std::thread storm([&] {
    while (!over) {
      ::pthread_kill(loop_thread, SIGUSR1);
      std::this_thread::sleep_for(20us);
    }
  });
  on_loop([]() -> Task<void> {
    for (bool piped : {false, true}) {
      FdPair fds = piped ? raw_pipe() : raw_pair();
      Descriptor in(std::move(fds.first)), out(std::move(fds.second));
      auto write = [&]() -> Task<void> {
        std::string block(50'000, 'x');
        for (int i = 0; i < 40; ++i) co_await write_all(out, block);
        out.close();
      };
      StartedTask<void> writer = write().start_in_current_scope();
      std::size_t sum = 0;
      for (;;) {
        std::string text = co_await read_text(in);
        if (text.empty()) break;
        sum += text.size();
      }
      EXPECT_EQ(sum, 2'000'000u);
      co_await std::move(writer);
    }
    auto before = std::chrono::steady_clock::now();
    co_await sleep_for(30ms);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 30ms);
    Listener listener = tcp_listener();
    for (int i = 0; i < 50; ++i) {
      Descriptor client(tcp_socket());
      auto connect = [&]() -> Task<void> {
        or_throw(co_await client.connect(general(listener.address), sizeof(sockaddr_in)));
      };
      StartedTask<void> connector = connect().start_in_current_scope();
      Result<Descriptor> accepted = co_await listener.socket.accept();
      EXPECT_TRUE(accepted.has_value());
      co_await std::move(connector);
    }
  });
  over = true;
  storm.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

// --- Fairness -----------------------------------------------------------------------------------

TEST_P(Limits, AnAlwaysReadyDescriptorStarvesNobody) {
  on_loop([]() -> Task<void> {
    Descriptor zeros(UniqueFd(checked(::open("/dev/zero", O_RDONLY | O_CLOEXEC), "open")));
    Pair flood = socket_pair(SOCK_DGRAM);
    bool over = false;
    std::size_t reads = 0, yields = 0;
    auto busy = [&]() -> Task<void> {
      std::byte buffer[16];
      while (!over) {
        or_throw(co_await zeros.read(buffer));
        ++reads;
      }
    };
    auto other = [&]() -> Task<void> {
      while (!over) {
        co_await yield();
        ++yields;
      }
    };
    // And a third waits for the kernel.
    auto echo = [&]() -> Task<void> {
      while (!over) {
        put(flood.theirs, "x");
        EXPECT_EQ(co_await read_text(flood.ours, 4), "x");
      }
    };
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      nursery.start(busy());
      nursery.start(other());
      nursery.start(echo());
      auto before = std::chrono::steady_clock::now();
      co_await sleep_for(30ms);
      EXPECT_LT(std::chrono::steady_clock::now() - before, 2s);
      over = true;
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_GT(reads, 10u);
    EXPECT_GT(yields, 10u);
  });
}

}  // namespace
