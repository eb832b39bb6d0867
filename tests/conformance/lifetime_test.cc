// SPDX-License-Identifier: MIT
// The life of a descriptor: closing under an await, reuse of numbers, other threads, other loops.
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "driver_fixture.h"
#include "support/stress.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Lifetime : DriverTest {};
WEFT_ON_EVERY_DRIVER(Lifetime);

Task<Result<std::size_t>> read_into(Descriptor& from, std::span<std::byte> buffer) {
  co_return co_await from.read(buffer);
}

// What a close() under an await must do, for reader and writer at once.
Task<void> close_under_both(Descriptor& ours, bool waits) {
  std::byte buffer[8];
  int begun = 0;
  auto reads = [&]() -> Task<Result<std::size_t>> {
    ++begun;
    co_return co_await ours.read(buffer);
  };
  auto writes = [&]() -> Task<Result<std::size_t>> {
    ++begun;
    co_return co_await ours.write(bytes_of("x"));
  };
  StartedTask<Result<std::size_t>> reader = reads().start_in_current_scope();
  StartedTask<Result<std::size_t>> writer = writes().start_in_current_scope();
  while (begun < 2) co_await yield();
  if (waits) co_await settle();
  ours.close();
  Result<std::size_t> read = co_await std::move(reader);
  EXPECT_TRUE(is_error(read, std::errc::bad_file_descriptor));
  Result<std::size_t> written = co_await std::move(writer);
  EXPECT_TRUE(is_error(written, std::errc::bad_file_descriptor));
}

TEST_P(Lifetime, CloseEndsWhatWaitsAndThePeerSeesTheEnd) {
  on_loop([]() -> Task<void> {
    for (bool waits : {false, true}) {
      Pair pair = socket_pair();
      std::size_t filled = fill(pair.ours.number());
      co_await close_under_both(pair.ours, waits);
      drain(pair.theirs, filled);
      EXPECT_EQ(get(pair.theirs), "");
    }
  });
  EXPECT_EQ(loop.statistics().descriptors, 0u);
}

// A listener whose queue is full does not answer.
Task<void> close_under_a_connect() {
  Listener listener = tcp_listener(0);
  std::vector<Descriptor> clients;
  auto connect = [&]() -> Task<Result<void>> {
    co_return co_await clients.back().connect(general(listener.address), sizeof(sockaddr_in));
  };
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(tcp_socket());
    StartedTask<Result<void>> connector = connect().start_in_current_scope();
    co_await sleep_for(50ms);
    bool waits = !connector.is_done();
    if (waits) clients.back().close();
    Result<void> connected = co_await std::move(connector);
    if (!waits) continue;
    EXPECT_TRUE(is_error(connected, std::errc::bad_file_descriptor));
    co_return;
  }
  ADD_FAILURE() << "the queue is never full";
}

TEST_P(Lifetime, CloseEndsAnAcceptAConnectAndAWaitForReadiness) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    auto accept = [&]() -> Task<std::error_code> {
      Result<Descriptor> accepted = co_await listener.socket.accept();
      co_return accepted.error();
    };
    StartedTask<std::error_code> acceptor = accept().start_in_current_scope();
    co_await settle();
    listener.socket.close();
    std::error_code error = co_await std::move(acceptor);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);

    co_await close_under_a_connect();

    Pair pair = socket_pair();
    auto wait = [&]() -> Task<Result<void>> { co_return co_await pair.ours.readable(); };
    StartedTask<Result<void>> waiter = wait().start_in_current_scope();
    co_await settle();
    pair.ours.close();
    Result<void> ready = co_await std::move(waiter);
    EXPECT_TRUE(is_error(ready, std::errc::bad_file_descriptor));
  });
}

// As the system says of a number that is none. It may have been closed between two operations of a task.
TEST_P(Lifetime, AnEmptyDescriptorIsBad) {
  on_loop([]() -> Task<void> {
    Descriptor none;
    std::byte buffer[1];
    Result<std::size_t> count = co_await none.read(buffer);
    EXPECT_TRUE(is_error(count, std::errc::bad_file_descriptor));
    Result<PooledBytes> lent = co_await none.read_pooled();
    EXPECT_TRUE(is_error(lent, std::errc::bad_file_descriptor));
    count = co_await none.pwrite(buffer, 0);
    EXPECT_TRUE(is_error(count, std::errc::bad_file_descriptor));
    Result<void> ready = co_await none.writable();
    EXPECT_TRUE(is_error(ready, std::errc::bad_file_descriptor));
    Result<Descriptor> accepted = co_await none.accept();
    EXPECT_TRUE(is_error(accepted, std::errc::bad_file_descriptor));
  });
}

// A task that is cancelled and whose descriptor is closed in the same moment ends once.
TEST_P(Lifetime, CancelAndCloseAtOnce) {
  on_loop([]() -> Task<void> {
    for (int i = 0; i < 100; ++i) {
      Pair pair = socket_pair();
      std::byte buffer[8];
      StartedTask<Result<std::size_t>> reader =
          read_into(pair.ours, buffer).start_in_current_scope();
      if (i % 3) co_await yield();
      if (i % 3 == 2) co_await sleep_for(100us);
      if (i % 2) {
        reader.cancel();
        pair.ours.close();
      } else {
        pair.ours.close();
        reader.cancel();
      }
      Outcome<Result<std::size_t>> outcome = co_await reader.outcome();
      if (outcome.has_value()) {
        EXPECT_TRUE(is_error(std::move(outcome).get(), std::errc::bad_file_descriptor));
      } else {
        EXPECT_TRUE(outcome.is_cancelled());
      }
    }
  });
}

// A child process may have it, too. What happens to the copy is no business of the loop's.
TEST_P(Lifetime, ACopyOfAClosedDescriptorReportsNothing) {
  on_loop([this]() -> Task<void> {
    Pair pair = socket_pair();
    StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
    co_await settle();
    put(pair.theirs, "x");
    EXPECT_EQ(co_await std::move(reader), "x");
    UniqueFd copy(checked(::fcntl(pair.ours.number(), F_DUPFD_CLOEXEC, 0), "dup"));
    pair.ours.close();
    constexpr std::size_t kTimes = 50;
    std::uint64_t sleeps = loop.statistics().sleeps;
    for (std::size_t i = 0; i < kTimes; ++i) {
      put(pair.theirs, "y");
      co_await settle();
    }
    // Each settle() sleeps once; twice, if it is told of the byte.
    EXPECT_LT(loop.statistics().sleeps - sleeps, kTimes + kTimes / 2);
    EXPECT_EQ(get(copy), std::string(kTimes, 'y'));
  });
}

// --- Numbers are used again ---------------------------------------------------------------------

// Each connection reads until it has its own name, letter by letter, or is closed.
Task<void> expect_name(std::shared_ptr<Descriptor> socket, char name, int& wrong, int& heard) {
  std::byte buffer[4];
  while (*socket) {
    Result<std::size_t> count = co_await socket->read(buffer);
    if (!count) {
      wrong += count.error() != std::errc::bad_file_descriptor;
      co_return;
    }
    if (*count == 0) ++wrong;  // nobody closes the other end first
    if (*count == 0) co_return;
    for (std::size_t i = 0; i < *count; ++i) wrong += buffer[i] != static_cast<std::byte>(name);
    heard += static_cast<int>(*count);
  }
}

TEST_P(Lifetime, NobodyHearsWhatWasMeantForTheLastOwnerOfANumber) {
  constexpr int kSockets = 32;
  const int rounds = kSanitized ? 2'000 : 10'000;
  Random random(20240607);
  int wrong = 0, heard = 0, written = 0;
  on_loop([&]() -> Task<void> {
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      struct Slot {
        std::shared_ptr<Descriptor> ours;
        UniqueFd theirs;
        char name = 0;
      };
      std::vector<Slot> slots(kSockets);
      char next = 0;
      for (int i = 0; i < rounds; ++i) {
        Slot& slot = slots[random.below(kSockets)];
        if (slot.ours && random.one_in(2)) {
          put(slot.theirs, std::string_view(&slot.name, 1));
          ++written;
        }
        if (!slot.ours || random.one_in(3)) {
          // The old one may have an event under way. The new one gets its number.
          if (slot.ours) slot.ours->close();
          FdPair pair = raw_pair();
          slot.ours = std::make_shared<Descriptor>(std::move(pair.first));
          slot.theirs = std::move(pair.second);
          slot.name = ++next;
          nursery.start(expect_name(slot.ours, slot.name, wrong, heard));
        }
        if (random.one_in(4)) co_await yield();
        if (random.one_in(64)) co_await sleep_for(50us);
      }
      for (Slot& slot : slots) {
        if (slot.ours) slot.ours->close();
      }
      co_return join;
    };
    co_await with_nursery(body);
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(heard, 0);
  EXPECT_LE(heard, written);
}

// --- Other threads, other loops -----------------------------------------------------------------

TEST_P(Lifetime, ADescriptorThatDiesOnAnotherThreadIsClosedByItsLoop) {
  on_loop([]() -> Task<void> {
    for (int i = 0; i < 20; ++i) {
      Pair pair = socket_pair();
      put(pair.theirs, "x");
      EXPECT_EQ(co_await read_text(pair.ours), "x");  // it is the loop's now
      Descriptor theirs(std::move(pair.theirs));
      std::thread undertaker([dies = std::move(pair.ours)]() mutable { dies = Descriptor(); });
      EXPECT_EQ(co_await read_text(theirs), "");
      undertaker.join();
    }
  });
}

TEST_P(Lifetime, ADescriptorOutlivesItsLoop) {
  Pair pair = socket_pair();
  {
    EventLoop brief(options_for(GetParam()));
    auto body = [&]() -> Task<void> {
      put(pair.theirs, "first");
      EXPECT_EQ(co_await read_at_least(pair.ours, 5), "first");
    };
    on_loop(brief, body);
  }
  {
    EventLoop second(options_for(GetParam()));
    auto body = [&]() -> Task<void> {
      put(pair.theirs, "second");
      EXPECT_EQ(co_await read_at_least(pair.ours, 6), "second");
    };
    on_loop(second, body);
  }
  pair.ours.close();
  EXPECT_EQ(get(pair.theirs), "");
}

// The end of the first branch cancels the second, in the middle of the close().
TEST_P(Lifetime, CloseEndsAReaderAndAWriterThatAreOneWait) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    const std::string much(1 << 16, 'x');
    while (::send(pair.ours.number(), much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
    auto either = [&]() -> Task<bool> {
      auto ready = co_await any_of(pair.ours.readable(), pair.ours.writable());
      co_return !ready.has_value() && ready.error() == std::errc::bad_file_descriptor;
    };
    StartedTask<bool> waits = either().start_in_current_scope();
    co_await settle();
    pair.ours.close();
    EXPECT_TRUE(co_await std::move(waits));
  });
}

// Returns: whether the other end is closed now.
bool sees_the_end(const UniqueFd& peer) {
  char byte;
  return ::recv(peer.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

// A socket that has waited on the loop, and so is known to the kernel's side of it.
Task<void> use(Pair& pair) {
  StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
  co_await settle();
  put(pair.theirs, "x");
  EXPECT_EQ(co_await std::move(reader), "x");
}

TEST_P(Lifetime, ADescriptorThatDiesBetweenTwoRunsIsClosedAtOnce) {
  Pair here = socket_pair(), elsewhere = socket_pair(), stays = socket_pair();
  on_loop([&]() -> Task<void> {
    for (Pair* each : {&here, &elsewhere, &stays}) co_await use(*each);
  });
  here.ours.close();
  EXPECT_TRUE(sees_the_end(here.theirs));
  std::thread([dies = std::move(elsewhere.ours)] {}).join();
  EXPECT_TRUE(sees_the_end(elsewhere.theirs));
  EXPECT_EQ(loop.statistics().descriptors, 1u);
  on_loop([&]() -> Task<void> { co_await use(stays); });  // the others have left nothing behind
}

TEST_P(Lifetime, ADescriptorThatDiesAsARunEndsIsClosedByItsEnd) {
  Pair pair = socket_pair();
  on_loop([&]() -> Task<void> {
    co_await use(pair);
    std::thread([dies = std::move(pair.ours)] {}).join();
  });
  EXPECT_TRUE(sees_the_end(pair.theirs));
}

// io_uring may still accept on it, and says that it does no more only to the thread of the ring.
TEST_P(Lifetime, AListenerThatDiesBetweenTwoRunsIsClosedAtOnceOrByTheNext) {
  auto can_connect = [](const Listener& to) {
    UniqueFd client = tcp_socket();
    return ::connect(client.get(), &general(to.address), sizeof(sockaddr_in)) == 0;
  };
  for (bool here : {true, false}) {
    Listener listener = tcp_listener();
    UniqueFd client;
    on_loop([&]() -> Task<void> {
      auto accept = [&]() -> Task<Result<Descriptor>> {
        co_return co_await listener.socket.accept();
      };
      StartedTask<Result<Descriptor>> acceptor = accept().start_in_current_scope();
      co_await settle();
      client = connect_to(listener.address);
      Result<Descriptor> accepted = co_await std::move(acceptor);
      EXPECT_TRUE(accepted.has_value());
    });
    if (here) {
      listener.socket.close();
    } else {
      std::thread([dies = std::move(listener.socket)] {}).join();
    }
    if (!here && GetParam() == Driver::io_uring) {
      on_loop([]() -> Task<void> { co_await settle(); });
    }
    EXPECT_FALSE(can_connect(listener));
    EXPECT_EQ(loop.statistics().descriptors, 0u);
  }
}

TEST_P(Lifetime, DescriptorsDieWhileRunsComeAndGo) {
  std::vector<UniqueFd> peers;
  std::vector<std::thread> undertakers;
  auto nothing = []() -> Task<void> { co_return; };
  auto brief = std::make_unique<EventLoop>(options_for(GetParam()));
  for (int i = 0; i < 100; ++i) {
    Pair first = socket_pair(), second = socket_pair();
    auto use_both = [&]() -> Task<void> {
      for (Pair* each : {&first, &second}) {
        co_await write_all(each->ours, "x");
        EXPECT_EQ(get(each->theirs, 1), "x");
      }
    };
    on_loop(*brief, use_both);
    for (Pair* each : {&first, &second}) {
      undertakers.emplace_back([dies = std::move(each->ours)] {});
      peers.push_back(std::move(each->theirs));
    }
    // And while its driver, or itself, ends and another begins.
    if (i % 10 == 3) std::thread([&] { on_loop(*brief, nothing); }).join();
    if (i % 10 == 7) brief = std::make_unique<EventLoop>(options_for(GetParam()));
  }
  for (std::thread& each : undertakers) each.join();
  on_loop(*brief, nothing);
  for (const UniqueFd& each : peers) EXPECT_TRUE(sees_the_end(each));
  EXPECT_EQ(brief->statistics().descriptors, 0u);
}

TEST_P(Lifetime, ALoopDrivenByAnotherThreadKeepsItsDescriptors) {
  Pair pair = socket_pair();
  for (int i = 0; i < 3; ++i) {
    std::thread driver([&] {
      on_loop([&]() -> Task<void> {
        StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
        co_await settle();
        put(pair.theirs, "x");
        EXPECT_EQ(co_await std::move(reader), "x");
      });
    });
    driver.join();
  }
}

TEST_P(Lifetime, UseOnAForeignLoopIsRefusedUntilItHasLeft) {
  Pair pair = socket_pair();
  on_loop([&]() -> Task<void> {
    put(pair.theirs, "home");
    EXPECT_EQ(co_await read_exactly(pair.ours, 2), "ho");
    std::string refusal;
    std::thread([&] {
      EventLoop foreign(options_for(GetParam()));
      auto trespass = [&]() -> Task<void> {
        try {
          co_await read_text(pair.ours);
        } catch (const UsageError& error) {
          refusal = error.what();
        }
      };
      on_loop(foreign, trespass);
    }).join();
    EXPECT_NE(refusal.find("belongs to another loop"), std::string::npos) << refusal;
    EXPECT_EQ(co_await read_text(pair.ours, 1), "m");
    pair.ours.leave_loop();
    std::thread([&] {
      EventLoop foreign(options_for(GetParam()));
      auto resume = [&]() -> Task<void> { EXPECT_EQ(co_await read_text(pair.ours), "e"); };
      on_loop(foreign, resume);
    }).join();
  });
}

TEST_P(Lifetime, NothingIsLostWhenADescriptorLeaves) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    for (int i = 0; i < 50; ++i) {
      put(pair.theirs, "ab");
      EXPECT_EQ(co_await read_text(pair.ours, 1), "a");
      EXPECT_EQ(co_await read_text(pair.ours, 1), "b");
    }
    put(pair.theirs, "one");
    EXPECT_EQ(co_await read_text(pair.ours, 1), "o");
    co_await settle();
    UniqueFd raw = pair.ours.release();
    EXPECT_EQ(get(raw), "ne");

    Listener listener = tcp_listener();
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 3; ++i) clients.push_back(connect_to(listener.address));
    Result<Descriptor> accepted = co_await listener.socket.accept();
    EXPECT_TRUE(accepted.has_value());
    co_await settle();
    int left = 2;
    if (listener.socket.accepted_ahead() > 0) {
      EXPECT_THROW(static_cast<void>(listener.socket.release()), UsageError);
    }
    for (; listener.socket.accepted_ahead() > 0; --left) {
      Result<Descriptor> ahead = co_await listener.socket.accept();
      EXPECT_TRUE(ahead.has_value());
    }
    UniqueFd raw_listener = listener.socket.release();
    for (; left > 0; --left) {
      UniqueFd next(
          checked(::accept4(raw_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK),
                  "accept4"));
    }
  });
}

Task<int> serve(Descriptor& listener, int connections) {
  int sum = 0;
  for (int i = 0; i < connections; ++i) {
    Result<Descriptor> accepted = co_await listener.accept();
    Descriptor server = or_throw(std::move(accepted));
    std::string name = co_await read_text(server);
    sum += name.at(0);
  }
  co_return sum;
}

// Accepted ahead or not, each connection is served by one loop or the other.
TEST_P(Lifetime, NoConnectionIsLostWhenAListenerLeavesOrItsLoopEnds) {
  Listener listener = tcp_listener();
  std::vector<UniqueFd> clients;
  int sum = 0;
  for (bool leaves : {true, false, false}) {
    for (char name : {1, 2, 3}) {
      clients.push_back(connect_to(listener.address));
      put(clients.back(), std::string_view(&name, 1));
    }
    EventLoop brief(options_for(GetParam()));
    auto body = [&]() -> Task<void> {
      sum += co_await serve(listener.socket, 1);
      co_await settle();
      if (leaves) listener.socket.leave_loop();
    };
    on_loop(brief, body);
  }
  on_loop([&]() -> Task<void> { sum += co_await serve(listener.socket, 6); });
  EXPECT_EQ(sum, 18);
}

// Connections are accepted ahead on io_uring; the listener brings them here, waits here, and leaves with them.
// epoll was still watching it then: on the next wait it was refused, and its entry, freed, was told of events.
TEST_P(Lifetime, AListenerThatLeavesWithConnectionsLeavesNothingElseBehind) {
  std::vector<Driver> all = drivers();
  if (std::find(all.begin(), all.end(), Driver::io_uring) == all.end()) {
    GTEST_SKIP() << "nobody else accepts ahead";
  }
  Listener listener = tcp_listener();
  std::vector<UniqueFd> clients;
  auto accept = [&]() -> Task<Result<Descriptor>> { co_return co_await listener.socket.accept(); };
  EventLoop ahead(options_for(Driver::io_uring));
  auto accept_ahead = [&]() -> Task<void> {
    StartedTask<Result<Descriptor>> first = accept().start_in_current_scope();
    co_await settle();
    for (int i = 0; i < 3; ++i) clients.push_back(connect_to(listener.address));
    Result<Descriptor> accepted = co_await std::move(first);
    EXPECT_TRUE(accepted.has_value());
    while (listener.socket.accepted_ahead() < 2) co_await yield();
    listener.socket.leave_loop();
  };
  on_loop(ahead, accept_ahead);
  EXPECT_EQ(listener.socket.accepted_ahead(), 2u);
  on_loop([&]() -> Task<void> {
    std::expected<Result<void>, TimedOut> never = co_await timeout(1ms, listener.socket.writable());
    EXPECT_FALSE(never.has_value());
    listener.socket.leave_loop();
    EXPECT_EQ(listener.socket.accepted_ahead(), 2u);
    for (int i = 0; i < 2; ++i) {
      Result<Descriptor> accepted = co_await listener.socket.accept();
      EXPECT_TRUE(accepted.has_value());
    }
    for (int i = 0; i < 3; ++i) {
      StartedTask<Result<Descriptor>> acceptor = accept().start_in_current_scope();
      co_await settle();
      clients.push_back(connect_to(listener.address));
      Result<Descriptor> accepted = co_await std::move(acceptor);
      EXPECT_TRUE(accepted.has_value());
    }
  });
}

TEST_P(Lifetime, ClosingAListenerClosesWhatItHasAndFreesItsAddressAtOnce) {
  on_loop([]() -> Task<void> {
    for (int i = 0; i < 20; ++i) {
      Listener listener = tcp_listener();
      std::vector<UniqueFd> clients;
      for (int each = 0; each < 3; ++each) clients.push_back(connect_to(listener.address));
      Result<Descriptor> accepted = co_await listener.socket.accept();
      EXPECT_TRUE(accepted.has_value());
      if (i % 2) co_await settle();
      accepted->close();
      listener.socket.close();
      for (UniqueFd& client : clients) {
        char byte;
        EXPECT_LE(::read(client.get(), &byte, 1), 0);  // the end, or a reset
      }
      UniqueFd again = tcp_socket();
      int one = 1;
      ::setsockopt(again.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
      EXPECT_EQ(::bind(again.get(), &general(listener.address), sizeof listener.address), 0);
      EXPECT_EQ(::listen(again.get(), 1), 0);
    }
  });
}

// Nobody accepts: the driver takes in only so many.
TEST_P(Lifetime, WhatIsAcceptedAheadHasABound) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    UniqueFd first = connect_to(listener.address);
    Result<Descriptor> accepted = co_await listener.socket.accept();
    EXPECT_TRUE(accepted.has_value());
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 300; ++i) {
      clients.push_back(connect_to(listener.address));
      if (i % 20 == 0) co_await settle();
    }
    EXPECT_LE(listener.socket.accepted_ahead(), 100u);
    for (int i = 0; i < 300; ++i) {
      Result<Descriptor> next = co_await listener.socket.accept();
      EXPECT_TRUE(next.has_value());
    }
    EXPECT_EQ(listener.socket.accepted_ahead(), 0u);
  });
}

TEST_P(Lifetime, ADescriptorDoesNotLeaveUnderAnAwait) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
    co_await settle();
    EXPECT_THROW(pair.ours.leave_loop(), UsageError);
    put(pair.theirs, "x");
    EXPECT_EQ(co_await std::move(reader), "x");
    pair.ours.leave_loop();
  });
}

// Between two loops, each of its own thread, again and again.
Task<void> hand_over(Descriptor& ours, const UniqueFd& theirs, EventLoop& other) {
  auto there = [&]() -> Task<void> {
    put(theirs, "b");
    EXPECT_EQ(co_await read_text(ours), "b");
    ours.leave_loop();
  };
  for (int i = 0; i < 100; ++i) {
    put(theirs, "a");
    EXPECT_EQ(co_await read_text(ours), "a");
    ours.leave_loop();
    co_await on(other, there());
  }
}

TEST_P(Lifetime, ADescriptorGoesBackAndForthBetweenLoops) {
  EventLoop other(options_for(GetParam()));
  std::promise<void> begun;
  std::atomic<bool> over{false};
  std::thread second([&] {
    auto body = [&]() -> Task<void> {
      begun.set_value();
      while (!over.load()) co_await sleep_for(1ms);
    };
    on_loop(other, body);
  });
  begun.get_future().wait();
  on_loop([&]() -> Task<void> {
    Pair pair = socket_pair();
    co_await hand_over(pair.ours, pair.theirs, other);
  });
  over = true;
  second.join();
}

}  // namespace
