// SPDX-License-Identifier: MIT
// Every operation of net/ and tls/ that can wait takes a time, and is as good as before when that has run out.
#include <array>
#include <string>

#include "dead_end.h"
#include "driver_fixture.h"
#include "stream_suite.h"
#include "support/temporary_directory.h"
#include "weft/net/buffered.h"
#include "weft/net/close_within.h"
#include "weft/net/connect.h"
#include "weft/net/serve_datagrams.h"
#include "weft/net/udp.h"

namespace {

using namespace weft;
using namespace weft::test;
using net::Address;

struct Timing : DriverTest {};
WEFT_ON_EVERY_DRIVER(Timing);

constexpr auto kSoon = 3ms;

// The operation waits for longer than it may.
template <class A>
Task<void> runs_out(const char* what, A operation) {
  auto ended = co_await within(kSoon, std::move(operation));
  EXPECT_TRUE(is_error(ended, std::errc::timed_out)) << what;
}

// Until there is no room, nor will be: TCP finds some when the peer's kernel acknowledges, up to 40 ms later.
template <class S>
Task<void> fill_up(S& stream) {
  const std::string text(64 * 1024, 'x');
  while (true) {
    Result<std::size_t> count = co_await within(100ms, stream.write_some(bytes_of(text)));
    if (!count) co_return;
  }
}

// What is made of a Stream, on one whose peer neither writes nor reads.
template <class S>
Task<void> examine(S& stream, S& peer) {
  std::array<std::byte, 16> buffer;
  co_await runs_out("read_some", stream.read_some(buffer));
  if constexpr (requires { stream.read_pooled(); }) {
    co_await runs_out("read_pooled", stream.read_pooled());
  }
  std::span<std::byte> room = buffer;
  co_await runs_out("read_exactly", net::read_exactly(stream, room));
  EXPECT_EQ(room.size(), buffer.size());
  net::BufferedReader<S> reader(stream);
  co_await runs_out("BufferedReader::fill", reader.fill());
  co_await runs_out("BufferedReader::read_until", reader.read_until("\n"));
  co_await runs_out("BufferedReader::read_exactly", reader.read_exactly(room));
  co_await runs_out("BufferedReader::read_some", reader.read_some(room));

  co_await fill_up(stream);
  std::span<const std::byte> rest = bytes_of("more");
  co_await runs_out("write_some", stream.write_some(rest));
  std::array<net::Part, 2> parts{net::Part("mo"), net::Part("re")};
  co_await runs_out("write_some of parts", stream.write_some(std::span<const net::Part>(parts)));
  co_await runs_out("write_all", net::write_all(stream, rest));
  EXPECT_EQ(rest.size(), 4u);
  std::span<net::Part> list = parts;
  co_await runs_out("write_all of parts", net::write_all(stream, list));
  EXPECT_EQ(list.size(), 2u);
  net::BufferedWriter<S> writer(stream, 4);
  Result<void> taken = co_await writer.write("more");
  EXPECT_TRUE(taken.has_value());
  co_await runs_out("BufferedWriter::flush", writer.flush());
  rest = bytes_of("!");
  co_await runs_out("BufferedWriter::write", writer.write(rest));
  EXPECT_EQ(writer.pending(), 4u);
  EXPECT_EQ(rest.size(), 1u);
  if constexpr (requires { stream.flush(); }) {
    co_await runs_out("flush", stream.flush());
    co_await runs_out("shutdown_write", stream.shutdown_write());
  } else {
    Result<void> ended = co_await within(kSoon, stream.shutdown_write());
    EXPECT_TRUE(ended.has_value()) << "does not wait";
  }

  // And it is as good as before.
  Result<void> sent = co_await net::write_all(peer, "a line\n");
  or_throw(sent);
  Result<std::span<const std::byte>> line = co_await within(kTooLong, reader.read_until("\n"));
  EXPECT_EQ(text_of(or_throw(line)), "a line\n");
  Result<void> left = co_await net::close_within(stream, kSoon);
  EXPECT_TRUE(is_error(left, std::errc::timed_out)) << "close_within";
}

template <class Kind>
Task<void> examine_kind() {
  auto both = co_await Kind::connect();
  co_await examine(both.first, both.second);
}

TEST_P(Timing, OfTcp) {
  on_loop([]() -> Task<void> {
    auto both = co_await OverTcp::connect();
    // Or Linux makes more room, when it asks 200 ms later whether there is any.
    int bytes = 16 * 1024;
    int number = both.second.descriptor().number();
    checked(::setsockopt(number, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), "SO_RCVBUF");
    co_await examine(both.first, both.second);
  });
}
TEST_P(Timing, OfUnix) { on_loop(examine_kind<OverUnix>); }
TEST_P(Timing, OfMemory) { on_loop(examine_kind<OverMemory>); }
#ifdef WEFT_HAS_TLS
TEST_P(Timing, OfTls) { on_loop(examine_kind<OverTls<OverUnix>>); }
TEST_P(Timing, OfTlsOverMemory) { on_loop(examine_kind<OverTls<OverMemory>>); }
TEST_P(Timing, OfAHandshake) {
  on_loop([]() -> Task<void> {
    auto both = co_await OverTcp::connect();
    tls::Stream client(std::move(both.first), client_context(), "localhost");
    tls::Stream server(std::move(both.second), server_context());
    co_await runs_out("handshake", client.handshake());
    auto shaken = co_await all_of(client.handshake(), server.handshake());
    or_throw(std::move(shaken));
  });
}
#endif

TEST_P(Timing, OfConnections) {
  on_loop([]() -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(Address::loopback_v4(0)));
    co_await runs_out("TcpListener::accept", listener.accept());
    Address where = or_throw(listener.local_address());
    auto both = co_await within(kTooLong, [&]() -> Task<Result<net::TcpStream>> {
      net::TcpStream peer = co_await ok(net::TcpStream::connect(where));
      co_return co_await listener.accept();
    });
    EXPECT_TRUE(both.has_value()) << "it accepts all the same";

    test::TemporaryDirectory scratch;
    net::UnixListener local = or_throw(net::UnixListener::listen(scratch.file("socket")));
    co_await runs_out("UnixListener::accept", local.accept());

    DeadEnd dead(Address::loopback_v4(0));
    co_await runs_out("TcpStream::connect", net::TcpStream::connect(dead.where()));
    std::vector<Address> several{dead.where(), dead.where()};
    co_await runs_out("connect_any", net::connect_any(several));
  });
}

TEST_P(Timing, OfDatagrams) {
  on_loop([]() -> Task<void> {
    net::UdpSocket socket = or_throw(net::UdpSocket::bind(Address::loopback_v4(0)));
    std::array<std::byte, 16> buffer;
    net::DatagramBatch batch;
    co_await runs_out("receive_from", socket.receive_from(buffer));
    co_await runs_out("receive_some", socket.receive_some(batch));
    // What does not wait may be given a time as well.
    Address itself = or_throw(socket.local_address());
    Result<void> sent = co_await within(kTooLong, socket.send_to(bytes_of("x"), itself));
    EXPECT_TRUE(sent.has_value());
    Result<net::Datagram> got = co_await within(kTooLong, socket.receive_from(buffer));
    EXPECT_EQ(text_of(or_throw(got).bytes), "x");
    EXPECT_TRUE(batch.add(bytes_of("y"), itself));
    sent = co_await within(kTooLong, socket.send_all(batch));
    EXPECT_TRUE(sent.has_value());
    Result<std::size_t> count = co_await within(kTooLong, socket.receive_some(batch));
    EXPECT_EQ(or_throw(count), 1u);
    net::DatagramSender sender(socket);
    sent = co_await within(kTooLong, sender.send_to(bytes_of("z"), itself));
    EXPECT_TRUE(sent.has_value());
  });
}

}  // namespace
