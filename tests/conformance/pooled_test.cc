// SPDX-License-Identifier: MIT
// read_pooled(): buffers that a loop lends, and bytes that a driver reads ahead.
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "driver_fixture.h"
#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Pooled : DriverTest {};
WEFT_ON_EVERY_DRIVER(Pooled);

constexpr std::size_t kBufferBytes = PooledBytes::kBytes;

// A TCP connection: what io_uring reads ahead.
Pair tcp_pair() {
  Listener listener = tcp_listener();
  UniqueFd theirs = connect_to(listener.address);
  UniqueFd ours(checked(::accept(listener.socket.number(), nullptr, nullptr), "accept"));
  return {Descriptor(std::move(ours)), std::move(theirs)};
}

// Every kind that is read by a way of its own.
struct Kind {
  const char* name;
  Pair (*make)();
};
Pair unix_pair() { return socket_pair(); }
Pair pipe_pair() {
  FdPair both = raw_pipe();
  return {Descriptor(std::move(both.first)), std::move(both.second)};
}
constexpr Kind kKinds[] = {{"tcp", tcp_pair}, {"unix", unix_pair}, {"pipe", pipe_pair}};

std::size_t buffers_lent() { return PlatformIO::current_or_null()->buffers_lent(); }

// Bytes that say where in the stream they stand.
std::string stretch(std::size_t from, std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    text[i] = static_cast<char>(((from + i) * 2654435761u) >> 13);
  }
  return text;
}
// Checks a stream against stretch(), piece by piece.
class Follower {
 public:
  void see(std::span<const std::byte> bytes) {
    if (text_of(bytes) != stretch(seen_, bytes.size())) ++wrong_;
    seen_ += bytes.size();
  }
  [[nodiscard]] std::size_t seen() const { return seen_; }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  std::size_t seen_ = 0;
  int wrong_ = 0;
};

Task<PooledBytes> take(Descriptor& from) {
  Result<PooledBytes> got = co_await from.read_pooled();
  co_return or_throw(std::move(got));
}
Task<std::string> take_text(Descriptor& from) {
  PooledBytes got = co_await take(from);
  co_return text_of(got);
}
// Until `bytes` have come. Chaos hands them out in pieces.
Task<std::string> take_text(Descriptor& from, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    std::string more = co_await take_text(from);
    if (more.empty()) break;
    text += more;
  }
  co_return text;
}

// Arms what the driver has for reading ahead: one read_pooled() that has waited.
Task<void> warm_up(Pair& pair) {
  auto first = [&]() -> Task<std::string> { co_return co_await take_text(pair.ours, 1); };
  StartedTask<std::string> reader = first().start_in_current_scope();
  co_await settle();
  put(pair.theirs, "w");
  EXPECT_EQ(co_await std::move(reader), "w");
}

// --- Reading ------------------------------------------------------------------------------------

TEST_P(Pooled, BytesComeInOrderInEverySize) {
  on_loop([]() -> Task<void> {
    for (const Kind& kind : kKinds) {
      Pair pair = kind.make();
      Follower follower;
      std::size_t sent = 0;
      for (std::size_t size :
           {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{1000}, kBufferBytes - 1,
            kBufferBytes, kBufferBytes + 1, 3 * kBufferBytes}) {
        put(pair.theirs, stretch(sent, size));
        sent += size;
        while (follower.seen() < sent) {
          PooledBytes got = co_await take(pair.ours);
          EXPECT_LE(got.size(), kBufferBytes);
          EXPECT_FALSE(got.empty()) << kind.name;
          if (got.empty()) break;
          follower.see(got);
        }
      }
      EXPECT_EQ(follower.wrong(), 0) << kind.name;
    }
    EXPECT_EQ(buffers_lent(), 0u);
  });
}

TEST_P(Pooled, TheEndComesAfterTheData) {
  on_loop([]() -> Task<void> {
    for (const Kind& kind : kKinds) {
      for (bool warm : {false, true}) {
        Pair pair = kind.make();
        if (warm) co_await warm_up(pair);
        put(pair.theirs, "the last words");
        pair.theirs.reset();
        co_await settle();
        EXPECT_EQ(co_await take_text(pair.ours, 14), "the last words") << kind.name;
        for (int again = 0; again < 3; ++again) {
          EXPECT_EQ(co_await take_text(pair.ours), "") << kind.name;
        }
        EXPECT_EQ(co_await read_text(pair.ours), "") << kind.name;
      }
    }
    EXPECT_EQ(buffers_lent(), 0u);
  });
}

TEST_P(Pooled, TheEndWakesAWaiter) {
  on_loop([]() -> Task<void> {
    for (const Kind& kind : kKinds) {
      Pair pair = kind.make();
      StartedTask<std::string> reader = take_text(pair.ours).start_in_current_scope();
      co_await settle();
      pair.theirs.reset();
      EXPECT_EQ(co_await std::move(reader), "") << kind.name;
    }
  });
}

// The kernel says it once: to whoever reads ahead, too.
TEST_P(Pooled, AResetComesAfterTheDataAndIsNotMistakenForTheEnd) {
  on_loop([]() -> Task<void> {
    for (bool waits : {false, true}) {
      Pair pair = tcp_pair();
      co_await warm_up(pair);
      auto read = [&]() -> Task<Result<PooledBytes>> {
        co_return co_await pair.ours.read_pooled();
      };
      std::optional<StartedTask<Result<PooledBytes>>> reader;
      if (waits) {
        reader = read().start_in_current_scope();
      } else {
        put(pair.theirs, "before it");
      }
      co_await settle();
      linger reset{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(pair.theirs.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      pair.theirs.reset();
      co_await settle();
      if (!waits) {
        EXPECT_EQ(co_await take_text(pair.ours, 9), "before it");
      }
      Result<PooledBytes> got = waits ? co_await *std::move(reader) : co_await read();
      EXPECT_TRUE(is_error(got, std::errc::connection_reset));
      // On which it ends.
      EXPECT_EQ(co_await take_text(pair.ours), "");
    }
  });
}

// A reader who comes back when the last bytes and the reset are both there already. io_uring began to read ahead by
// waiting for an event, and the reset was none any more.
TEST_P(Pooled, AResetThatCameWithTheDataIsSeenByWhoComesLater) {
  on_loop([]() -> Task<void> {
    Pair pair = tcp_pair();
    co_await warm_up(pair);
    // Another kind of read ends the reading ahead, and leaves nothing.
    put(pair.theirs, "b");
    std::string second = co_await read_text(pair.ours, 1);
    EXPECT_EQ(second, "b");
    co_await settle();
    put(pair.theirs, "last");
    linger reset{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(pair.theirs.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    pair.theirs.reset();
    co_await settle();
    std::string last = co_await take_text(pair.ours, 4);
    EXPECT_EQ(last, "last");
    Result<PooledBytes> end = co_await within(2s, pair.ours.read_pooled());
    EXPECT_TRUE(is_error(end, std::errc::connection_reset));
  });
}

TEST_P(Pooled, AFileIsReadFromWhereItStands) {
  on_loop([]() -> Task<void> {
    UniqueFd fd(checked(::memfd_create("pooled", MFD_CLOEXEC), "memfd_create"));
    const std::size_t size = 3 * kBufferBytes + 17;
    put(fd, stretch(0, size));
    ::lseek(fd.get(), 0, SEEK_SET);
    Descriptor file(std::move(fd));
    Follower follower;
    for (;;) {
      PooledBytes got = co_await take(file);
      if (got.empty()) break;
      follower.see(got);
    }
    EXPECT_EQ(follower.seen(), size);
    EXPECT_EQ(follower.wrong(), 0);
    EXPECT_EQ(buffers_lent(), 0u);
  });
}

TEST_P(Pooled, ASecondReaderIsRefused) {
  on_loop([]() -> Task<void> {
    for (const Kind& kind : kKinds) {
      Pair pair = kind.make();
      StartedTask<std::string> first = take_text(pair.ours, 5).start_in_current_scope();
      co_await settle();
      std::string refusal;
      try {
        static_cast<void>(co_await pair.ours.read_pooled());
      } catch (const UsageError& error) {
        refusal = error.what();
      }
      EXPECT_NE(refusal.find("one reader at a time"), std::string::npos) << refusal;
      put(pair.theirs, "first");
      EXPECT_EQ(co_await std::move(first), "first");
    }
  });
}

// --- Mixed with the other ways to read ----------------------------------------------------------

// One of them, chosen at random, with room for `most` bytes.
Task<void> read_somehow(Descriptor& from, Follower& follower, Random& random) {
  std::vector<std::byte> room(1 + random.below(2 * kBufferBytes));
  std::size_t half = room.size() / 2;
  const iovec parts[]{{room.data(), half}, {room.data() + half, room.size() - half}};
  switch (random.below(6)) {
    case 0: {
      Result<std::size_t> count = co_await from.read(room);
      follower.see(std::span(room).first(or_throw(count)));
      break;
    }
    case 1: {
      Result<std::size_t> count = co_await from.readv(parts);
      follower.see(std::span(room).first(or_throw(count)));
      break;
    }
    case 2: {
      Result<void> ready = co_await from.readable();
      or_throw(ready);
      break;
    }
    default: {
      PooledBytes got = co_await take(from);
      follower.see(got);
      break;
    }
  }
}

TEST_P(Pooled, EveryWayToReadContinuesWhereTheLastEnded) {
  constexpr std::size_t kSum = 4 << 20;
  for (const Kind& kind : kKinds) {
    Pair pair = kind.make();
    std::thread sender([&] {
      Random random(7);
      for (std::size_t sent = 0; sent < kSum;) {
        std::size_t size = std::min<std::size_t>(kSum - sent, 1 + random.below(40'000));
        put(pair.theirs, stretch(sent, size));
        sent += size;
        if (random.one_in(4)) std::this_thread::yield();
      }
    });
    on_loop([&]() -> Task<void> {
      Follower follower;
      Random random(11);
      while (follower.seen() < kSum) co_await read_somehow(pair.ours, follower, random);
      EXPECT_EQ(follower.seen(), kSum) << kind.name;
      EXPECT_EQ(follower.wrong(), 0) << kind.name;
    });
    sender.join();
  }
}

TEST_P(Pooled, WhatWasReadAheadIsPeekedAtAndReceivedAsAMessage) {
  on_loop([]() -> Task<void> {
    Pair pair = tcp_pair();
    co_await warm_up(pair);
    put(pair.theirs, "twice");
    co_await settle();
    co_await settle();
    char room[16];
    iovec part{room, sizeof room};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    for (int flags : {int{MSG_PEEK}, 0}) {
      Result<std::size_t> count = co_await pair.ours.recvmsg(message, flags);
      EXPECT_EQ(std::string(room, or_throw(count)), "twice");
    }
    EXPECT_FALSE(pair.ours.has_read_ahead());
  });
}

// A Unix stream is never read ahead: the descriptors that come with its bytes would be lost.
TEST_P(Pooled, DescriptorsThatFollowAreNotLost) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    co_await warm_up(pair);
    char text[] = "with a descriptor";
    iovec part{text, 17};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int sent = pair.theirs.get();
    std::memcpy(CMSG_DATA(header), &sent, sizeof sent);
    checked(static_cast<int>(::sendmsg(pair.theirs.get(), &message, 0)), "sendmsg");
    co_await settle();
    Result<std::size_t> count = co_await pair.ours.recvmsg(message);
    EXPECT_EQ(or_throw(count), 17u);
    header = CMSG_FIRSTHDR(&message);
    EXPECT_NE(header, nullptr);
    if (!header) co_return;
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    EXPECT_TRUE(UniqueFd(received));
  });
}

// --- Cancelling ---------------------------------------------------------------------------------

TEST_P(Pooled, ACancelledReaderLosesNothing) {
  on_loop([]() -> Task<void> {
    for (const Kind& kind : kKinds) {
      Pair pair = kind.make();
      for (int round = 0; round < 3; ++round) {
        StartedTask<std::string> reader = take_text(pair.ours).start_in_current_scope();
        if (round > 0) co_await settle();
        reader.cancel();
        Outcome<std::string> outcome = co_await reader.outcome();
        EXPECT_TRUE(outcome.is_cancelled()) << kind.name;
      }
      put(pair.theirs, "all of it");
      co_await settle();
      EXPECT_EQ(co_await take_text(pair.ours, 9), "all of it") << kind.name;
    }
    EXPECT_EQ(buffers_lent(), 0u);
  });
}

TEST_P(Pooled, AStormOfCancellationsLosesNothing) {
  constexpr std::size_t kSum = kSanitized ? 1 << 19 : 2 << 20;
  for (const Kind& kind : kKinds) {
    Pair pair = kind.make();
    std::thread sender([&] {
      Random random(3);
      for (std::size_t sent = 0; sent < kSum;) {
        std::size_t size = std::min<std::size_t>(kSum - sent, 1 + random.below(3000));
        put(pair.theirs, stretch(sent, size));
        sent += size;
        if (random.one_in(3)) std::this_thread::yield();
      }
    });
    on_loop([&]() -> Task<void> {
      Follower follower;
      Random random(5);
      std::size_t cancelled = 0;
      auto attempt = [&]() -> Task<void> { co_await read_somehow(pair.ours, follower, random); };
      while (follower.seen() < kSum) {
        StartedTask<void> reader = attempt().start_in_current_scope();
        for (unsigned turns = random.below(4); turns > 0; --turns) co_await yield();
        reader.cancel();
        Outcome<void> outcome = co_await reader.outcome();
        EXPECT_FALSE(outcome.has_error());
        if (outcome.is_cancelled()) ++cancelled;
        if (outcome.has_error()) break;
      }
      EXPECT_EQ(follower.seen(), kSum) << kind.name;
      EXPECT_EQ(follower.wrong(), 0) << kind.name;
      EXPECT_GT(cancelled, 0u) << kind.name;
    });
    sender.join();
  }
}

// --- Bounds -------------------------------------------------------------------------------------

// The peer sends as fast as it can; nobody reads. What piles up outside of the kernel is bounded.
TEST_P(Pooled, AFastSenderIsHeldBack) {
  on_loop([]() -> Task<void> {
    Pair pair = tcp_pair();
    co_await warm_up(pair);
    // The kernel finishes what it has in hand: 32 in a row, and once more.
    constexpr std::size_t kInHand = 64;
    std::size_t sent = 0, quiet = 0;
    for (; quiet < 5; co_await settle()) {
      std::size_t more = fill(pair.theirs.get());
      quiet = more == 0 ? quiet + 1 : 0;
      sent += more;
      EXPECT_LE(buffers_lent(), Descriptor::kReadAheadMax + kInHand);
      if (sent > (64u << 20)) break;
    }
    EXPECT_LT(sent, 64u << 20) << "it was never held back";
    for (std::size_t seen = 0; seen < sent;) {
      PooledBytes got = co_await take(pair.ours);
      EXPECT_FALSE(got.empty());
      if (got.empty()) break;
      seen += got.size();
    }
    EXPECT_FALSE(pair.ours.has_read_ahead());
    EXPECT_EQ(buffers_lent(), 0u);
  });
}

// ... and a slow reader gets it all.
TEST_P(Pooled, ASlowReaderGetsEveryByteOfAFastSender) {
  constexpr std::size_t kSum = 4 << 20;
  Pair pair = tcp_pair();
  std::thread sender([&] {
    for (std::size_t sent = 0; sent < kSum; sent += 65536) put(pair.theirs, stretch(sent, 65536));
  });
  on_loop([&]() -> Task<void> {
    Follower follower;
    for (std::size_t reads = 0; follower.seen() < kSum; ++reads) {
      PooledBytes got = co_await take(pair.ours);
      EXPECT_FALSE(got.empty());
      if (got.empty()) break;
      follower.see(got);
      if (reads % 16 == 0) co_await sleep_for(1ms);
      EXPECT_LE(buffers_lent(), PooledBytes::kCount);
    }
    EXPECT_EQ(follower.seen(), kSum);
    EXPECT_EQ(follower.wrong(), 0);
  });
  sender.join();
}

TEST_P(Pooled, ConnectionsThatWaitHoldNoBuffers) {
  on_loop([]() -> Task<void> {
    constexpr std::size_t kConnections = 300;  // more than there are buffers
    static_assert(kConnections > PooledBytes::kCount);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < kConnections; ++i) {
      pairs.push_back(i % 3 == 0 ? socket_pair() : tcp_pair());
    }
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto reader = [](Descriptor& from) -> Task<void> {
        EXPECT_EQ(co_await take_text(from, 5), "hello");
      };
      for (Pair& pair : pairs) nursery.start(reader(pair.ours));
      co_await settle();
      EXPECT_EQ(buffers_lent(), 0u);
      for (Pair& pair : pairs) put(pair.theirs, "hello");
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(buffers_lent(), 0u);
  });
}

// Tasks that hold what they have read, and read on, do not wait for each other's buffers.
TEST_P(Pooled, WhoeverHoldsAllTheBuffersHaltsNobody) {
  on_loop([]() -> Task<void> {
    for (const Kind& kind : kKinds) {
      Pair hoard = kind.make();
      Pair other = kind.make();
      StartedTask<std::string> waits = take_text(other.ours, 5).start_in_current_scope();
      co_await settle();
      std::vector<PooledBytes> held;
      std::string text;
      while (held.size() < PooledBytes::kCount + 20) {
        put(hoard.theirs, "x");
        held.push_back(co_await take(hoard.ours));
        EXPECT_EQ(held.back().size(), 1u);
      }
      EXPECT_LE(buffers_lent(), PooledBytes::kCount);
      put(other.theirs, "still");
      EXPECT_EQ(co_await std::move(waits), "still") << kind.name;
      for (const PooledBytes& each : held) text += text_of(each);
      EXPECT_EQ(text, std::string(held.size(), 'x'));
      held.clear();
      EXPECT_EQ(buffers_lent(), 0u) << kind.name;
      // And goes on from the stock.
      put(hoard.theirs, "after");
      EXPECT_EQ(co_await take_text(hoard.ours, 5), "after") << kind.name;
    }
  });
}

TEST_P(Pooled, WaitingWithoutBuffersDoesNotSpin) {
  on_loop([]() -> Task<void> {
    Pair hoard = tcp_pair();
    std::vector<PooledBytes> held;
    while (held.size() < PooledBytes::kCount) {
      put(hoard.theirs, "x");
      held.push_back(co_await take(hoard.ours));
    }
    StartedTask<std::string> waits = take_text(hoard.ours, 4).start_in_current_scope();
    co_await settle();
    auto before = thread_cpu();
    co_await sleep_for(100ms);
    EXPECT_LT(thread_cpu() - before, 50ms);
    put(hoard.theirs, "late");
    EXPECT_EQ(co_await std::move(waits), "late");
  });
}

// --- Lives and other threads --------------------------------------------------------------------

TEST_P(Pooled, CloseEndsTheWaitAndDropsWhatWasReadAhead) {
  on_loop([]() -> Task<void> {
    for (const Kind& kind : kKinds) {
      Pair pair = kind.make();
      auto read = [&]() -> Task<Result<PooledBytes>> {
        co_return co_await pair.ours.read_pooled();
      };
      StartedTask<Result<PooledBytes>> reader = read().start_in_current_scope();
      co_await settle();
      pair.ours.close();
      EXPECT_TRUE(is_error(co_await std::move(reader), std::errc::bad_file_descriptor))
          << kind.name;
    }
    Pair pair = tcp_pair();
    co_await warm_up(pair);
    put(pair.theirs, "nobody reads this");
    co_await settle();
    pair.ours.close();
    EXPECT_EQ(buffers_lent(), 0u);
  });
}

TEST_P(Pooled, ReleaseRefusesToLoseBytes) {
  on_loop([]() -> Task<void> {
    Pair pair = tcp_pair();
    co_await warm_up(pair);
    put(pair.theirs, "read ahead");
    co_await settle();
    UniqueFd fd;
    std::string text, refusal;
    try {
      fd = pair.ours.release();
    } catch (const UsageError& error) {
      refusal = error.what();
    }
    if (!fd) {
      EXPECT_EQ(GetParam(), Driver::io_uring);
      EXPECT_NE(refusal.find("read ahead"), std::string::npos);
      while (pair.ours.has_read_ahead()) text += co_await take_text(pair.ours);
      fd = pair.ours.release();
    }
    // Nobody reads ahead any more: the rest is the new owner's.
    put(pair.theirs, " and not");
    co_await settle();
    int left = 0;
    ::ioctl(fd.get(), FIONREAD, &left);
    EXPECT_EQ(text.size() + static_cast<std::size_t>(left), 18u);
    text += get(fd);
    EXPECT_EQ(text, "read ahead and not");
    EXPECT_FALSE(pair.ours);
  });
}

// What was read ahead goes along: whether the descriptor leaves its loop, or outlives it; to any driver.
TEST_P(Pooled, BytesReadAheadMoveToTheNextLoop) {
  for (Driver next : drivers()) {
    for (bool leaves : {true, false}) {
      Pair pair = tcp_pair();
      {
        EventLoop first(options_for(GetParam()));
        auto here = [&]() -> Task<void> {
          co_await warm_up(pair);
          put(pair.theirs, "carried ");
          co_await settle();
          if (leaves) pair.ours.leave_loop();
        };
        on_loop(first, here);
      }
      put(pair.theirs, "over");
      EventLoop second(options_for(next));
      auto there = [&]() -> Task<void> {
        EXPECT_EQ(co_await take_text(pair.ours, 12), "carried over");
      };
      on_loop(second, there);
      pair.ours.close();
    }
  }
}

// To let go of it io_uring waits for the kernel, and meets what others wait for.
TEST_P(Pooled, WhatDiesElsewhereDoesNotHoldUpOthers) {
  on_loop([]() -> Task<void> {
    Pair dies = tcp_pair(), stays = tcp_pair();
    auto read = [](Descriptor& from) -> Task<std::string> {
      Result<PooledBytes> bytes = co_await from.read_pooled();
      co_return text_of(*bytes);
    };
    StartedTask<std::string> first = read(dies.ours).start_in_current_scope();
    co_await settle();
    put(dies.theirs, "x");
    EXPECT_EQ(co_await std::move(first), "x");
    StartedTask<std::string> second = read(stays.ours).start_in_current_scope();
    co_await settle();
    std::thread([gone = std::move(dies.ours)] {}).join();
    put(stays.theirs, "hello");
    auto text = co_await timeout(10s, std::move(second));
    EXPECT_EQ(text.value_or("slept with a task ready"), "hello");
  });
}

TEST_P(Pooled, BytesReadAheadArePassedOverWithoutAPlaceForThem) {
  on_loop([]() -> Task<void> {
    Pair pair = tcp_pair();
    put(pair.theirs, "x");
    Result<PooledBytes> first = co_await pair.ours.read_pooled();
    EXPECT_EQ(text_of(*first), "x");
    put(pair.theirs, "0123456789");
    co_await settle();
    iovec nowhere{nullptr, 4};
    msghdr message{};
    message.msg_iov = &nowhere;
    message.msg_iovlen = 1;
    Result<std::size_t> passed = co_await pair.ours.recvmsg(message, MSG_TRUNC);
    EXPECT_EQ(passed.value_or(0), 4u);
    EXPECT_EQ(co_await read_at_least(pair.ours, 6), "456789");
  });
}

// io_uring still reads it ahead, and lets go of it only on the thread of the ring.
TEST_P(Pooled, WhatDiesBetweenTwoRunsIsClosedAtOnceOrByTheNext) {
  for (bool here : {true, false}) {
    Pair pair = tcp_pair();
    on_loop([&]() -> Task<void> {
      put(pair.theirs, "x");
      Result<PooledBytes> bytes = co_await pair.ours.read_pooled();
      EXPECT_TRUE(bytes.has_value());
    });
    if (here) {
      pair.ours.close();
    } else {
      std::thread([dies = std::move(pair.ours)] {}).join();
    }
    if (!here && GetParam() == Driver::io_uring) {
      on_loop([]() -> Task<void> { co_await settle(); });
    }
    EXPECT_EQ(get(pair.theirs), "");
    EXPECT_EQ(loop.statistics().descriptors, 0u);
  }
}

TEST_P(Pooled, ABufferIsGivenBackOnAnotherThread) {
  on_loop([]() -> Task<void> {
    Pair pair = tcp_pair();
    for (int round = 0; round < 3; ++round) {
      std::vector<PooledBytes> held;
      while (held.size() < PooledBytes::kCount) {
        put(pair.theirs, "x");
        held.push_back(co_await take(pair.ours));
      }
      std::thread elsewhere([given = std::move(held)]() mutable { given.clear(); });
      // While they come back, others are lent.
      for (int i = 0; i < 100; ++i) {
        put(pair.theirs, "y");
        EXPECT_EQ(co_await take_text(pair.ours), "y");
      }
      elsewhere.join();
      EXPECT_EQ(buffers_lent(), 0u);
    }
  });
}

TEST_P(Pooled, ABufferOutlivesItsLoop) {
  for (bool on_another_thread : {false, true}) {
    std::vector<PooledBytes> held;
    {
      EventLoop other(options_for(GetParam()));
      Pair pair = tcp_pair();
      auto body = [&]() -> Task<void> {
        for (int i = 0; i < 10; ++i) {
          put(pair.theirs, "survivor");
          held.push_back(co_await take(pair.ours));
        }
      };
      on_loop(other, body);
    }
    std::string text;
    for (const PooledBytes& each : held) text += text_of(each);
    EXPECT_EQ(text.substr(0, 8), "survivor");
    if (on_another_thread) std::thread([&] { held.clear(); }).join();
  }
}

}  // namespace
