// SPDX-License-Identifier: MIT
// What net::UdpSocket must do on every driver, and what the batches of Descriptor beneath it must.
#include "weft/net/udp.h"

#include <array>
#include <numeric>
#include <random>

#include "driver_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using net::Address;
using net::Datagram;
using net::DatagramBatch;
using net::UdpOptions;
using net::UdpSocket;

struct Udp : DriverTest {};
WEFT_ON_EVERY_DRIVER(Udp);

// Room for all that a test sends before anybody reads.
constexpr int kRoomy = 4 << 20;

// A socket on a free port of this machine, and where it is.
struct Bound {
  explicit Bound(UdpOptions options = {}) {
    options.receive_queue_bytes = kRoomy;
    socket = or_throw(UdpSocket::bind(Address::loopback_v4(0), options));
    where = or_throw(socket.local_address());
  }
  UdpSocket socket;
  Address where;
};

Task<std::string> next_text(UdpSocket& socket) {
  std::array<std::byte, 2048> buffer;
  Result<Datagram> got = co_await socket.receive_from(buffer);
  Datagram datagram = or_throw(got);
  EXPECT_FALSE(datagram.truncated());
  co_return text_of(datagram.bytes);
}
Task<void> send_text(UdpSocket& from, std::string_view text, Address to) {
  Result<void> sent = co_await from.send_to(bytes_of(text), to);
  or_throw(sent);
}

TEST_P(Udp, ADatagramArrivesWholeWithItsSender) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    co_await send_text(a.socket, "one", b.where);
    co_await send_text(a.socket, "", b.where);
    co_await send_text(a.socket, "three", b.where);
    std::array<std::byte, 64> buffer;
    for (const char* expected : {"one", "", "three"}) {
      Result<Datagram> got = co_await b.socket.receive_from(buffer);
      EXPECT_TRUE(got.has_value());
      if (!got) co_return;
      EXPECT_EQ(text_of(got->bytes), expected);
      EXPECT_EQ(got->peer, a.where);
      EXPECT_EQ(got->sent_bytes, std::string_view(expected).size());
      EXPECT_EQ(got->segment_bytes, 0u);
    }
  });
}

TEST_P(Udp, WhatIsCutOffIsReportedAndTheNextOneIsWhole) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    co_await send_text(a.socket, "much too long", b.where);
    co_await send_text(a.socket, "fits", b.where);
    std::array<std::byte, 4> buffer;
    Result<Datagram> cut = co_await b.socket.receive_from(buffer);
    EXPECT_TRUE(or_throw(cut).truncated());
    EXPECT_EQ(cut->sent_bytes, 13u);
    EXPECT_EQ(text_of(cut->bytes), "much");
    EXPECT_EQ(cut->peer, a.where);
    Result<Datagram> whole = co_await b.socket.receive_from(buffer);
    EXPECT_FALSE(or_throw(whole).truncated()) << "exactly as large as the buffer";
    EXPECT_EQ(text_of(whole->bytes), "fits");
  });
}

TEST_P(Udp, TooLargeForADatagramIsAnErrorOfThatOneOnly) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    std::string huge(net::kDatagramBytesMax + 1, 'x');
    Result<void> sent = co_await a.socket.send_to(bytes_of(huge), b.where);
    EXPECT_TRUE(is_error(sent, std::errc::message_size));
    co_await send_text(a.socket, "small", b.where);
    std::string text = co_await next_text(b.socket);
    EXPECT_EQ(text, "small");
  });
}

// ICMP answers while the receiver waits; the same socket then reaches somebody who came later.
TEST_P(Udp, ThatNobodyIsThereIsToldOnceAndTheSocketGoesOn) {
  on_loop([]() -> Task<void> {
    Address nobody = Bound().where;
    UdpSocket socket = or_throw(UdpSocket::connect(nobody));
    std::array<std::byte, 64> buffer;
    auto receive = [&]() -> Task<Result<Datagram>> {
      co_return co_await socket.receive_from(buffer);
    };
    for (int i = 0; i < 2; ++i) {
      StartedTask<Result<Datagram>> waits = receive().start_in_current_scope();
      co_await settle();
      Result<void> sent = co_await socket.send(bytes_of("anybody?"));
      EXPECT_TRUE(sent.has_value());
      Result<Datagram> refused = co_await std::move(waits);
      EXPECT_TRUE(is_error(refused, std::errc::connection_refused));
    }
    UdpSocket late = or_throw(UdpSocket::bind(nobody));
    Result<void> sent = co_await socket.send(bytes_of("now?"));
    EXPECT_TRUE(sent.has_value());
    std::string text = co_await next_text(late);
    EXPECT_EQ(text, "now?");
    co_await send_text(late, "yes", or_throw(socket.local_address()));
    text = co_await next_text(socket);
    EXPECT_EQ(text, "yes");
  });
}

TEST_P(Udp, WithAPeerItHearsNobodyElse) {
  on_loop([]() -> Task<void> {
    Bound a, b, stranger;
    or_throw(b.socket.connect_to(a.where));
    co_await send_text(stranger.socket, "psst", b.where);
    co_await send_text(a.socket, "hello", b.where);
    std::string text = co_await next_text(b.socket);
    EXPECT_EQ(text, "hello");
    Result<void> sent = co_await a.socket.send(bytes_of("x"));
    EXPECT_TRUE(is_error(sent, std::errc::destination_address_required)) << "it has no peer";
  });
}

TEST_P(Udp, ACancelledReceiveTakesNothing) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    std::array<std::byte, 64> buffer;
    Result<Datagram> late = co_await within(1ms, b.socket.receive_from(buffer));
    EXPECT_TRUE(is_error(late, std::errc::timed_out));
    DatagramBatch batch;
    Result<std::size_t> none = co_await within(1ms, b.socket.receive_some(batch));
    EXPECT_TRUE(is_error(none, std::errc::timed_out));
    co_await send_text(a.socket, "still", b.where);
    std::string text = co_await next_text(b.socket);
    EXPECT_EQ(text, "still");
  });
}

TEST_P(Udp, ClosedUnderAReceiveItEnds) {
  on_loop([]() -> Task<void> {
    for (bool batched : {false, true}) {
      Bound a;
      std::array<std::byte, 8> buffer;
      DatagramBatch batch;
      auto receive = [&]() -> Task<std::error_code> {
        if (batched) {
          Result<std::size_t> got = co_await a.socket.receive_some(batch);
          co_return got.error();
        }
        Result<Datagram> got = co_await a.socket.receive_from(buffer);
        co_return got.error();
      };
      StartedTask<std::error_code> waits = receive().start_in_current_scope();
      co_await settle();
      a.socket.close();
      std::error_code error = co_await std::move(waits);
      EXPECT_EQ(error, std::errc::bad_file_descriptor);
    }
  });
}

TEST_P(Udp, AfterCloseEveryOperationIsTheSameError) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    a.socket.close();
    std::array<std::byte, 8> buffer;
    Result<Datagram> got = co_await a.socket.receive_from(buffer);
    EXPECT_TRUE(is_error(got, std::errc::bad_file_descriptor));
    Result<void> sent = co_await a.socket.send_to(bytes_of("x"), b.where);
    EXPECT_TRUE(is_error(sent, std::errc::bad_file_descriptor));
    DatagramBatch batch;
    Result<std::size_t> count = co_await a.socket.receive_some(batch);
    EXPECT_TRUE(is_error(count, std::errc::bad_file_descriptor));
    EXPECT_TRUE(batch.add(bytes_of("x"), b.where));
    sent = co_await a.socket.send_all(batch);
    EXPECT_TRUE(is_error(sent, std::errc::bad_file_descriptor));
    EXPECT_EQ(batch.size(), 1u);
  });
}

TEST_P(Udp, ASecondReceiverIsRefusedAndTheFirstIsNotDisturbed) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    StartedTask<std::string> first = next_text(b.socket).start_in_current_scope();
    co_await settle();
    bool refused = false;
    DatagramBatch batch;
    try {
      (void)co_await b.socket.receive_some(batch);
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    co_await send_text(a.socket, "first", b.where);
    std::string text = co_await std::move(first);
    EXPECT_EQ(text, "first");
  });
}

TEST_P(Udp, ABatchTakesWhatIsThereAndGoesBackToItsSenders) {
  on_loop([]() -> Task<void> {
    Bound server, a, b;
    DatagramBatch batch({.count_max = 4, .bytes_max = 8});
    for (const char* text : {"a1", "a2", "a3"}) co_await send_text(a.socket, text, server.where);
    co_await send_text(b.socket, "far too long", server.where);
    co_await send_text(b.socket, "b2", server.where);
    Result<std::size_t> count = co_await server.socket.receive_some(batch);
    EXPECT_EQ(or_throw(count), 4u) << "as many as fit, by one call";
    EXPECT_EQ(batch[0].peer, a.where);
    EXPECT_EQ(batch[3].peer, b.where);
    EXPECT_TRUE(batch[3].truncated());
    EXPECT_EQ(batch[3].sent_bytes, 12u);
    Result<void> sent = co_await server.socket.send_all(batch);
    EXPECT_TRUE(sent.has_value());
    EXPECT_TRUE(batch.empty());
    count = co_await server.socket.receive_some(batch);
    EXPECT_EQ(or_throw(count), 1u) << "the rest";
    EXPECT_EQ(text_of(batch[0].bytes), "b2");
    for (const char* text : {"a1", "a2", "a3"}) EXPECT_EQ(co_await next_text(a.socket), text);
    std::string text = co_await next_text(b.socket);
    EXPECT_EQ(text, "far too ");
  });
}

TEST_P(Udp, ADatagramOfABatchThatCannotBeSentStaysAtItsFront) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    DatagramBatch batch({.count_max = 3, .bytes_max = 70'000});
    std::string huge(net::kDatagramBytesMax + 1, 'x');
    EXPECT_TRUE(batch.add(bytes_of("before"), b.where));
    EXPECT_TRUE(batch.add(bytes_of(huge), b.where));
    EXPECT_TRUE(batch.add(bytes_of("after"), b.where));
    EXPECT_FALSE(batch.add(bytes_of("no room"), b.where));
    Result<void> sent = co_await a.socket.send_all(batch);
    EXPECT_TRUE(is_error(sent, std::errc::message_size));
    EXPECT_EQ(batch.size(), 2u);
    batch.drop_front(1);
    sent = co_await a.socket.send_all(batch);
    EXPECT_TRUE(sent.has_value());
    for (const char* text : {"before", "after"}) EXPECT_EQ(co_await next_text(b.socket), text);
  });
}

// Lets others run a number of times.
Task<void> some_turns(unsigned count) {
  for (unsigned i = 0; i < count; ++i) co_await yield();
}

// io_uring has heard that there is one when it is told to cancel.
TEST_P(Udp, ABatchThatIsCancelledWhenADatagramHasJustComeLeavesItThere) {
  on_loop([]() -> Task<void> {
    Bound a, b;
    DatagramBatch batch;
    auto receive = [&]() -> Task<Result<std::size_t>> {
      co_return co_await b.socket.receive_some(batch);
    };
    StartedTask<Result<std::size_t>> waits = receive().start_in_current_scope();
    co_await settle();
    const sockaddr& to = b.where.native();
    EXPECT_EQ(::sendto(a.socket.descriptor().number(), "x", 1, 0, &to, b.where.native_size()), 1);
    waits.cancel();
    Outcome<Result<std::size_t>> outcome = co_await waits.outcome();
    EXPECT_TRUE(outcome.is_cancelled());
    std::string text = co_await next_text(b.socket);
    EXPECT_EQ(text, "x");
  });
}

// Loopback loses nothing as long as the receiver's queue has room; nor may we.
TEST_P(Udp, CancelledAtRandomNoDatagramIsLostOrDoubled) {
  on_loop([]() -> Task<void> {
    constexpr std::uint32_t kCount = 3000;
    constexpr std::uint32_t kAhead =
        20;  // on their way at most, so that the receiver comes to wait
    Bound a, b;
    std::uint32_t received = 0;
    unsigned cancelled = 0;
    auto send = [&]() -> Task<void> {
      std::mt19937 random(1);
      DatagramBatch batch({.count_max = 16, .bytes_max = sizeof(std::uint32_t)});
      for (std::uint32_t next = 0; next < kCount || !batch.empty();) {
        while (next < kCount && batch.add(std::as_bytes(std::span(&next, 1)), b.where)) ++next;
        while (next > received + kAhead) co_await yield();
        auto [sent, passed] = co_await any_of(a.socket.send_some(batch), some_turns(random() % 3));
        if (sent) or_throw(*sent);
        if (!sent) ++cancelled;
        co_await some_turns(random() % 8);
      }
    };
    auto receive = [&]() -> Task<void> {
      std::mt19937 random(2);
      DatagramBatch batch({.count_max = 7, .bytes_max = sizeof(std::uint32_t)});
      auto check = [&](std::span<const std::byte> bytes) {
        std::uint32_t number = 0;
        EXPECT_EQ(bytes.size(), sizeof number);
        std::memcpy(&number, bytes.data(), sizeof number);
        EXPECT_EQ(number, received++);
      };
      while (received < kCount) {
        if (random() % 2) {
          auto [got, passed] =
              co_await any_of(b.socket.receive_some(batch), some_turns(random() % 4));
          if (!got) ++cancelled;
          if (got) {
            or_throw(*got);
            for (const Datagram& each : batch) check(each.bytes);
          }
        } else {
          std::array<std::byte, 8> buffer;
          auto [got, passed] =
              co_await any_of(b.socket.receive_from(buffer), some_turns(random() % 4));
          if (!got) ++cancelled;
          if (got) check(or_throw(*got).bytes);
        }
      }
    };
    co_await all_of(send(), receive());
    EXPECT_EQ(received, kCount);
    EXPECT_GT(cancelled, 20u) << "the test did not test";
  });
}

// Whoever cuts them, the kernel or we.
TEST_P(Udp, SegmentsAreDatagrams) {
  for (bool by_kernel : {true, false}) {
    SCOPED_TRACE(by_kernel);
    auto body = [&]() -> Task<void> {
      Bound a({.kernel_segments = by_kernel}), b;
      std::string text(100'003, '\0');
      std::iota(text.begin(), text.end(), 0);
      std::span<const std::byte> rest = bytes_of(text);
      Result<void> sent = co_await a.socket.send_segments(rest, 1000, b.where);
      or_throw(sent);
      EXPECT_TRUE(rest.empty());
      std::string got;
      for (int i = 0; i <= 100; ++i) {
        std::string piece = co_await next_text(b.socket);
        EXPECT_EQ(piece.size(), i < 100 ? 1000u : 3u);
        got += piece;
      }
      EXPECT_TRUE(got == text);
      // Without a checksum the kernel knows of segments and refuses to cut them, with EINVAL.
      int one = 1;
      int number = a.socket.descriptor().number();
      checked(::setsockopt(number, SOL_SOCKET, SO_NO_CHECK, &one, sizeof one), "SO_NO_CHECK");
      rest = bytes_of("by threes");
      sent = co_await a.socket.send_segments(rest, 3, b.where);
      EXPECT_TRUE(sent.has_value());
      for (const char* each : {"by ", "thr", "ees"}) EXPECT_EQ(co_await next_text(b.socket), each);
    };
    on_loop(loop, body);
  }
}

// Linux says EMSGSIZE of that now, and said EINVAL before. IPv6 lets a socket have an MTU of its own.
TEST_P(Udp, SegmentsAboveTheMtuAreSentInFragmentsOneByOne) {
  on_loop([]() -> Task<void> {
    UdpOptions roomy{.receive_queue_bytes = kRoomy};
    UdpSocket a = or_throw(UdpSocket::bind(Address::loopback_v6(0)));
    UdpSocket b = or_throw(UdpSocket::bind(Address::loopback_v6(0), roomy));
    Address where = or_throw(b.local_address());
    int mtu = 1280;
    int number = a.descriptor().number();
    checked(::setsockopt(number, IPPROTO_IPV6, IPV6_MTU, &mtu, sizeof mtu), "IPV6_MTU");
    std::string text(4001, '\0');
    std::iota(text.begin(), text.end(), 0);
    std::span<const std::byte> rest = bytes_of(text);
    Result<void> sent = co_await a.send_segments(rest, 2000, where);
    EXPECT_TRUE(sent.has_value()) << sent.error();
    EXPECT_TRUE(rest.empty());
    if (!sent) co_return;
    std::string got;
    for (std::size_t expected : {2000, 2000, 1}) {
      std::string piece = co_await next_text(b);
      EXPECT_EQ(piece.size(), expected);
      got += piece;
    }
    EXPECT_TRUE(got == text);
    // One that is too large for any datagram is an error all the same.
    std::string large(70'000, 'x');
    rest = bytes_of(large);
    sent = co_await a.send_segments(rest, 66'000, where);
    EXPECT_TRUE(is_error(sent, std::errc::message_size));
    EXPECT_EQ(rest.size(), large.size());
  });
}

TEST_P(Udp, CoalescedDatagramsAreTheSameBytesAndSayWhereTheyPart) {
  on_loop([]() -> Task<void> {
    Bound a, b({.coalesce = true});
    std::string text(50'500, '\0');
    std::iota(text.begin(), text.end(), 0);
    std::span<const std::byte> rest = bytes_of(text);
    Result<void> sent = co_await a.socket.send_segments(rest, 1000, b.where);
    or_throw(sent);
    std::string got;
    std::vector<std::byte> buffer(65536);
    int datagrams = 0;
    while (got.size() < text.size()) {
      Result<Datagram> next = co_await b.socket.receive_from(buffer);
      EXPECT_FALSE(or_throw(next).truncated());
      got += text_of(next->bytes);
      if (next->segment_bytes > 0) {
        EXPECT_EQ(next->segment_bytes, 1000u);
        EXPECT_GT(next->bytes.size(), 1000u);
      } else {
        EXPECT_LE(next->bytes.size(), 1000u);
      }
      ++datagrams;
    }
    EXPECT_TRUE(got == text);
    EXPECT_LE(datagrams, 51);
  });
}

TEST_P(Udp, ACoalescedOneThatIsSentBackPartsAgain) {
  on_loop([]() -> Task<void> {
    Bound a, b({.coalesce = true});
    std::string text(2500, 't');
    std::span<const std::byte> rest = bytes_of(text);
    Result<void> sent = co_await a.socket.send_segments(rest, 1000, b.where);
    or_throw(sent);
    std::size_t returned = 0;
    while (returned < text.size()) {
      DatagramBatch batch({.count_max = 8, .bytes_max = 65536});
      Result<std::size_t> count = co_await b.socket.receive_some(batch);
      or_throw(count);
      for (const Datagram& each : batch) returned += each.bytes.size();
      sent = co_await b.socket.send_all(batch);
      or_throw(sent);
    }
    for (std::size_t expected : {1000, 1000, 500}) {
      std::string piece = co_await next_text(a.socket);
      EXPECT_EQ(piece.size(), expected);
    }
  });
}

TEST_P(Udp, OverIPv6ItHearsIPv4AsWellUnlessItDoesNotWantTo) {
  on_loop([]() -> Task<void> {
    UdpSocket both = or_throw(UdpSocket::bind(Address::any_v6(0)));
    std::uint16_t port = or_throw(both.local_address()).port();
    Bound four;
    co_await send_text(four.socket, "from four", Address::loopback_v4(port));
    std::string text = co_await next_text(both);
    EXPECT_EQ(text, "from four");
    UdpSocket six = or_throw(UdpSocket::bind(Address::loopback_v6(0)));
    co_await send_text(six, "from six", Address::loopback_v6(port));
    std::array<std::byte, 64> buffer;
    Result<Datagram> got = co_await both.receive_from(buffer);
    EXPECT_EQ(or_throw(got).peer, or_throw(six.local_address()));
    UdpSocket only = or_throw(UdpSocket::bind(Address::any_v6(0), {.v6_only = true}));
    std::uint16_t other = or_throw(only.local_address()).port();
    EXPECT_TRUE(UdpSocket::bind(Address::any_v4(other)).has_value());
  });
}

TEST_P(Udp, ItMovesToAnotherLoop) {
  EventLoop there(options_for(GetParam()));
  Bound a, b;
  auto here = [&]() -> Task<void> {
    co_await send_text(a.socket, "one", b.where);
    co_await send_text(a.socket, "two", b.where);
    std::string text = co_await next_text(b.socket);
    EXPECT_EQ(text, "one");
    b.socket.move_to(there);
    EXPECT_THROW((void)b.socket.receive_from({}), UsageError);
  };
  on_loop(loop, here);
  auto go_on = [&]() -> Task<void> {
    std::string text = co_await next_text(b.socket);
    EXPECT_EQ(text, "two");
  };
  on_loop(there, go_on);
}

// --- The batches of a Descriptor
// ------------------------------------------------------------------

// Of Unix datagrams, whose sender does have to wait for its receiver.
TEST_P(Udp, ABatchThatWaitsIsSentWhenThereIsRoom) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair(SOCK_DGRAM);
    std::size_t filled = 0;
    {
      Descriptor& ours = pair.ours;
      std::array<char, 1> byte{'f'};
      while (::send(ours.number(), byte.data(), 1, MSG_DONTWAIT) == 1) ++filled;
      EXPECT_EQ(errno, EAGAIN);
    }
    std::array<iovec, 2> parts{iovec{const_cast<char*>("one"), 3},
                               iovec{const_cast<char*>("two"), 3}};
    std::array<mmsghdr, 2> messages{};
    for (int i = 0; i < 2; ++i) {
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    auto send = [&]() -> Task<Result<std::size_t>> {
      co_return co_await pair.ours.sendmmsg(messages);
    };
    StartedTask<Result<std::size_t>> dropped = send().start_in_current_scope();
    co_await settle();
    dropped.cancel();
    Outcome<Result<std::size_t>> outcome = co_await dropped.outcome();
    EXPECT_TRUE(outcome.is_cancelled()) << "it waited, and sent nothing";
    StartedTask<Result<std::size_t>> waits = send().start_in_current_scope();
    co_await settle();
    for (std::size_t i = 0; i < filled; ++i) EXPECT_EQ(get(pair.theirs, 16), "f");
    Result<std::size_t> count = co_await std::move(waits);
    EXPECT_GE(or_throw(count), 1u);
    EXPECT_EQ(get(pair.theirs, 16), "one") << "once";
  });
}

}  // namespace
