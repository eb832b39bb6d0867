// SPDX-License-Identifier: MIT
// Cancelling an operation: before it begins, while it waits, and as it completes (L5).
#include <csignal>
#include <random>
#include <thread>

#include "driver_fixture.h"
#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Cancelling : DriverTest {};
WEFT_ON_EVERY_DRIVER(Cancelling);

// Starts work(), cancels it at once or when it waits, and says whether it ended cancelled.
template <class Work>
Task<bool> is_cancelled(Work& work, bool while_it_waits) {
  StartedTask<void> started = work().start_in_current_scope();
  if (while_it_waits) {
    co_await settle();
    EXPECT_FALSE(started.is_done());
  }
  started.cancel();
  Outcome<void> outcome = co_await started.outcome();
  co_return outcome.is_cancelled();
}

TEST_P(Cancelling, AReaderThatIsCancelledTookNothing) {
  on_loop([]() -> Task<void> {
    for (bool waits : {false, true}) {
      Pair pair = socket_pair();
      std::byte buffer[16];
      const iovec part{buffer, sizeof buffer};
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(&part);
      message.msg_iovlen = 1;
      auto read = [&]() -> Task<void> { or_throw(co_await pair.ours.read(buffer)); };
      auto readv = [&]() -> Task<void> { or_throw(co_await pair.ours.readv(std::span(&part, 1))); };
      auto recvmsg = [&]() -> Task<void> { or_throw(co_await pair.ours.recvmsg(message)); };
      auto readable = [&]() -> Task<void> { or_throw(co_await pair.ours.readable()); };
      EXPECT_TRUE(co_await is_cancelled(read, waits));
      EXPECT_TRUE(co_await is_cancelled(readv, waits));
      EXPECT_TRUE(co_await is_cancelled(recvmsg, waits));
      EXPECT_TRUE(co_await is_cancelled(readable, waits));
      put(pair.theirs, "all of it");
      co_await settle();
      EXPECT_EQ(co_await read_at_least(pair.ours, 9), "all of it");
    }
  });
}

TEST_P(Cancelling, AWriterThatIsCancelledGaveNothing) {
  on_loop([]() -> Task<void> {
    for (bool waits : {false, true}) {
      Pair pair = socket_pair();
      std::size_t filled = waits ? fill(pair.ours.number()) : 0;
      char text[] = "never";
      const iovec part{text, 5};
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(&part);
      message.msg_iovlen = 1;
      auto write = [&]() -> Task<void> { or_throw(co_await pair.ours.write(bytes_of("never"))); };
      auto writev = [&]() -> Task<void> {
        or_throw(co_await pair.ours.writev(std::span(&part, 1)));
      };
      auto sendmsg = [&]() -> Task<void> { or_throw(co_await pair.ours.sendmsg(message)); };
      auto writable = [&]() -> Task<void> { or_throw(co_await pair.ours.writable()); };
      EXPECT_TRUE(co_await is_cancelled(write, waits));
      EXPECT_TRUE(co_await is_cancelled(writev, waits));
      EXPECT_TRUE(co_await is_cancelled(sendmsg, waits));
      EXPECT_TRUE(co_await is_cancelled(writable, waits));
      drain(pair.theirs, filled);
      co_await write_all(pair.ours, "only this");
      EXPECT_EQ(get(pair.theirs), "only this");
    }
  });
}

TEST_P(Cancelling, APipesReaderTookNothing) {
  on_loop([]() -> Task<void> {
    FdPair pipe = raw_pipe();
    Descriptor in(std::move(pipe.first));
    std::byte buffer[16];
    auto read = [&]() -> Task<void> { or_throw(co_await in.read(buffer)); };
    EXPECT_TRUE(co_await is_cancelled(read, true));
    put(pipe.second, "whole");
    EXPECT_EQ(co_await read_at_least(in, 5), "whole");
  });
}

TEST_P(Cancelling, AnAcceptThatIsCancelledTookNobody) {
  on_loop([]() -> Task<void> {
    for (bool waits : {false, true}) {
      Listener listener = tcp_listener();
      auto accept = [&]() -> Task<void> {
        Result<Descriptor> accepted = co_await listener.socket.accept();
        Descriptor server = or_throw(std::move(accepted));
      };
      EXPECT_TRUE(co_await is_cancelled(accept, waits));
      UniqueFd client = connect_to(listener.address);
      co_await settle();
      Result<Descriptor> accepted = co_await listener.socket.accept();
      EXPECT_TRUE(accepted.has_value());
    }
  });
}

// A listener whose queue is full does not answer.
TEST_P(Cancelling, AConnectThatIsCancelledEnds) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener(0);
    std::vector<Descriptor> clients;
    auto connect = [&]() -> Task<void> {
      or_throw(co_await clients.back().connect(general(listener.address), sizeof(sockaddr_in)));
    };
    for (int i = 0; i < 8; ++i) {
      clients.emplace_back(tcp_socket());
      std::expected<void, TimedOut> connected = co_await timeout(50ms, connect());
      if (!connected) co_return;
    }
    ADD_FAILURE() << "the queue is never full";
  });
}

TEST_P(Cancelling, ABorrowedWaitEnds) {
  on_loop([]() -> Task<void> {
    for (bool waits : {false, true}) {
      FdPair pair = raw_pair();
      fill(pair.first.get());
      auto in = [&]() -> Task<void> { or_throw(co_await readable(pair.first.get())); };
      auto out = [&]() -> Task<void> { or_throw(co_await writable(pair.first.get())); };
      EXPECT_TRUE(co_await is_cancelled(in, waits));
      EXPECT_TRUE(co_await is_cancelled(out, waits));
    }
  });
  EXPECT_EQ(loop.statistics().descriptors, 0u);
}

TEST_P(Cancelling, AFileOperationEndsOneWayOrTheOther) {
  on_loop([]() -> Task<void> {
    for (int i = 0; i < 50; ++i) {
      for (bool yields : {false, true}) {
        auto open = []() -> Task<void> {
          Result<Descriptor> file = co_await open_file("/dev/null", O_RDONLY);
          Descriptor opened = or_throw(std::move(file));
        };
        StartedTask<void> started = open().start_in_current_scope();
        if (yields) co_await yield();
        started.cancel();
        Outcome<void> outcome = co_await started.outcome();
        EXPECT_FALSE(outcome.has_error());
      }
    }
  });
}

TEST_P(Cancelling, TimeoutAroundARead) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    std::byte buffer[16];
    auto late = co_await timeout(5ms, pair.ours.read(buffer));
    EXPECT_FALSE(late.has_value());
    put(pair.theirs, "x");
    auto soon = co_await timeout(10s, pair.ours.read(buffer));
    EXPECT_TRUE(soon.has_value() && soon->has_value() && **soon == 1u);
  });
}

TEST_P(Cancelling, ByAnotherThread) {
  on_loop([]() -> Task<void> {
    for (int i = 0; i < 100; ++i) {
      Pair pair = socket_pair();
      StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
      CancelHandle handle = reader.cancel_handle();
      if (i % 2) co_await yield();
      std::thread canceller([&handle] { handle.cancel(); });
      Outcome<std::string> outcome = co_await reader.outcome();
      EXPECT_TRUE(outcome.is_cancelled());
      canceller.join();
    }
  });
}

// --- Bytes are counted end to end ---------------------------------------------------------------

struct CancelRaces : DriverTest {
  CancelRaces() {
    const char* given = std::getenv("WEFT_SEED");
    seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("[   SEED   ] WEFT_SEED=%llu\n", static_cast<unsigned long long>(seed));
  }
  std::uint64_t seed;
};
WEFT_ON_EVERY_DRIVER(CancelRaces);

constexpr unsigned char kModulus = 251;
constexpr std::size_t kRaceBytes = kSanitized ? 40'000 : 200'000;

// Cancels a task some time after its start: from its own loop, or from another thread.
Task<void> cancel_soon(CancelHandle victim, Random random) {
  for (unsigned i = random.below(4); i > 0; --i) co_await yield();
  if (random.one_in(3)) co_await sleep_for(std::chrono::microseconds(random.below(60)));
  victim.cancel();
}

template <class Work>
Task<std::size_t> race(Work& work, Random& random) {
  StartedTask<std::size_t> started = work().start_in_current_scope();
  StartedTask<void> canceller =
      cancel_soon(started.cancel_handle(), random.split()).start_in_current_scope();
  Outcome<std::size_t> outcome = co_await started.outcome();
  co_await std::move(canceller);
  if (outcome.is_cancelled()) co_return 0;
  co_return std::move(outcome).get();
}

TEST_P(CancelRaces, NoByteThatWasReadIsLost) {
  FdPair fds = raw_pair();
  std::thread writer([&, random = Random(seed ^ 1)]() mutable {
    for (std::size_t at = 0; at < kRaceBytes;) {
      std::string block(1 + random.below(40), '\0');
      block.resize(std::min(block.size(), kRaceBytes - at));
      for (char& each : block) each = static_cast<char>(at++ % kModulus);
      put(fds.second, block);
      if (random.one_in(3))
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(50)));
    }
    fds.second.reset();
  });
  std::size_t at = 0, wrong = 0, rounds = 0, empty = 0;
  on_loop([&]() -> Task<void> {
    Descriptor in(std::move(fds.first));
    Random random(seed);
    std::byte buffer[64];
    bool ended = false;
    auto read = [&]() -> Task<std::size_t> {
      Result<std::size_t> count = co_await in.read(std::span(buffer, 1 + random.below(64)));
      if (*count == 0) ended = true;
      co_return or_throw(count);
    };
    while (!ended) {
      ++rounds;
      std::size_t count = co_await race(read, random);
      if (count == 0) ++empty;
      for (std::size_t i = 0; i < count; ++i) {
        wrong += buffer[i] != static_cast<std::byte>(at++ % kModulus);
      }
    }
  });
  writer.join();
  EXPECT_EQ(at, kRaceBytes) << "seed " << seed;
  EXPECT_EQ(wrong, 0u) << "seed " << seed;
  std::printf("[  ROUNDS  ] %zu reads, %zu of them cancelled\n", rounds, empty);
}

Task<void> count_one(Descriptor& from, std::size_t& delivered) {
  std::byte buffer[1];
  Result<std::size_t> count = co_await from.read(buffer);
  delivered += count.value_or(0);
}

Task<void> cancel_at_once(Nursery& nursery) {
  nursery.cancel();
  co_return;
}

std::size_t bytes_left(std::vector<Pair>& pairs) {
  std::size_t left = 0;
  char byte;
  for (Pair& pair : pairs) left += ::recv(pair.ours.number(), &byte, 1, MSG_DONTWAIT) == 1;
  return left;
}

// More reads than may be over at once: those that have to let others go first have their bytes.
TEST_P(CancelRaces, ReadsThatArePutOffAreDelivered) {
  on_loop([]() -> Task<void> {
    constexpr std::size_t kCount = 300;  // more than a ring of io_uring holds, too
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < kCount; ++i) pairs.push_back(socket_pair());
    for (Pair& pair : pairs) put(pair.theirs, "x");
    std::size_t delivered = 0;
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (Pair& pair : pairs) nursery.start(count_one(pair.ours, delivered));
      nursery.start(cancel_at_once(nursery));
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(delivered + bytes_left(pairs), kCount);
  });
}

// More completions than one look at the kernel takes in: the rest have taken their bytes, too.
TEST_P(CancelRaces, ReadsThatAreOverBeforeTheirTurnAreDelivered) {
  const std::size_t count = 400;
  for (int round = 0; round < 5; ++round) {
    on_loop([&]() -> Task<void> {
      std::vector<Pair> pairs;
      for (std::size_t i = 0; i < count; ++i) pairs.push_back(socket_pair());
      std::size_t delivered = 0;
      auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
        for (Pair& pair : pairs) nursery.start(count_one(pair.ours, delivered));
        while (loop.statistics().operations < count) co_await yield();
        co_await settle();
        for (Pair& pair : pairs) put(pair.theirs, "x");
        while (delivered == 0) co_await yield();
        co_return cancel;
      };
      co_await with_nursery(body);
      EXPECT_EQ(delivered + bytes_left(pairs), count);
    });
  }
}

TEST_P(CancelRaces, EveryByteThatWasWrittenIsCounted) {
  FdPair fds = raw_pair();
  int small = 4096;
  ::setsockopt(fds.first.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  std::size_t seen = 0, wrong = 0;
  std::thread reader([&, random = Random(seed ^ 1)]() mutable {
    for (;;) {
      std::string block = get(fds.second, 1 + random.below(3000));
      if (block.empty()) break;
      for (char each : block) wrong += each != static_cast<char>(seen++ % kModulus);
    }
  });
  std::size_t at = 0;
  on_loop([&]() -> Task<void> {
    Descriptor out(std::move(fds.first));
    Random random(seed);
    std::vector<std::byte> block(3000);
    auto write = [&]() -> Task<std::size_t> {
      std::span<std::byte> part(block.data(), 1 + random.below(3000));
      for (std::size_t i = 0; i < part.size(); ++i) {
        part[i] = static_cast<std::byte>((at + i) % kModulus);
      }
      co_return or_throw(co_await out.write(part));
    };
    while (at < 20 * kRaceBytes) at += co_await race(write, random);
  });
  reader.join();
  EXPECT_EQ(seen, at) << "seed " << seed;
  EXPECT_EQ(wrong, 0u) << "seed " << seed;
}

TEST_P(CancelRaces, NoConnectionThatWasAcceptedIsLost) {
  constexpr int kConnections = kSanitized ? 300 : 2000;
  Listener listener = tcp_listener();
  sockaddr_in address = listener.address;
  std::thread clients([&, random = Random(seed ^ 1)]() mutable {
    for (int i = 0; i < kConnections; ++i) {
      // Its peer answers, or else it was lost, and this hangs.
      UniqueFd client = connect_to(address);
      put(client, "?");
      ASSERT_EQ(get(client), "!");
      if (random.one_in(4))
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(80)));
    }
  });
  int accepted = 0;
  on_loop([&]() -> Task<void> {
    Random random(seed);
    Descriptor server;
    auto accept = [&]() -> Task<std::size_t> {
      Result<Descriptor> next = co_await listener.socket.accept();
      server = or_throw(std::move(next));
      co_return 1;
    };
    while (accepted < kConnections) {
      if (co_await race(accept, random) == 0) continue;
      ++accepted;
      EXPECT_EQ(co_await read_text(server), "?");
      co_await write_all(server, "!");
    }
  });
  clients.join();
  EXPECT_EQ(accepted, kConnections) << "seed " << seed;
}

}  // namespace
