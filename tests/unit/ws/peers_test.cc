// SPDX-License-Identifier: MIT
// Python's websockets (Debian: python3-websockets), as a client of ours and as a server for ours, over loopback.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/ws_fixture.h"
#include "weft/net/buffered.h"
#include "weft/net/tcp.h"
#include "weft/run/process.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;

// Debian's own, which has Debian's packages, whatever else is first in PATH.
constexpr const char* kPython = "/usr/bin/python3";

class WebSocketPeers : public ::testing::Test {
 protected:
  void SetUp() override {
    EventLoop loop;
    ProcessOptions look(kPython, {"-c", "import websockets"});
    Result<Finished> looked = run(loop, run_process(std::move(look)));
    ASSERT_TRUE(looked && looked->status.success())
        << "this test needs Python's websockets: install python3-websockets (script/setup does)";
  }
};

constexpr const char* kClient = R"(
import asyncio, sys, websockets

async def talk(uri, compression):
    async with websockets.connect(uri, compression=compression, max_size=None) as socket:
        for size in (0, 1, 125, 126, 65535, 65536, 900000):
            text = ("grüße " * (size // 6 + 1))[:size]
            await socket.send(text)
            assert await socket.recv() == text, size
            data = bytes(i * 7 % 251 for i in range(size))
            await socket.send(data)
            assert await socket.recv() == data, size
        await socket.send(["frag", "ments ", "of text"])
        assert await socket.recv() == "fragments of text"
        pong = await socket.ping(b"are you there")
        await asyncio.wait_for(pong, 10)
        await asyncio.gather(*(socket.send(str(i)) for i in range(100)))
        assert [await socket.recv() for i in range(100)] == [str(i) for i in range(100)]
    assert socket.close_code == 1000, socket.close_code

async def too_big(uri):
    async with websockets.connect(uri, max_size=None) as socket:
        try:
            await socket.send("x" * 3000000)
            await socket.recv()
            assert False, "not refused"
        except websockets.ConnectionClosed:
            assert socket.close_code == 1009, socket.close_code

async def main(uri):
    await talk(uri, None)
    await talk(uri, "deflate")
    await too_big(uri)
    print("all is well")

asyncio.run(main(sys.argv[1]))
)";

TEST_F(WebSocketPeers, APythonClientOfOurs) {
  for (Driver driver : {Driver::automatic, Driver::epoll, Driver::poll}) {
    EventLoop loop(EventLoopOptions{.driver = driver});
    auto whole = [&]() -> Task<void> {
      net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
      std::uint16_t port = or_throw(listener.local_address()).port();
      ws::EndpointOptions options;
      options.deflate.emplace();
      options.limits.message_bytes_max = 2'000'000;
      options.limits.frame_bytes_max = 2'000'000;
      ws::Endpoint endpoint(test::echo, options);
      http::Server server(endpoint);
      auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
        nursery.start(serve);
        ProcessOptions client(kPython,
                              {"-c", kClient, "ws://127.0.0.1:" + std::to_string(port) + "/"});
        Result<Finished> done = co_await within(60s, run_process(std::move(client)));
        EXPECT_TRUE(done && done->status.success()) << (done ? done->err : "too slow");
        EXPECT_EQ(done ? done->out : "", "all is well\n");
        co_return cancel;
      };
      co_await with_nursery(body);
      EXPECT_EQ(server.connections(), 0u);
    };
    run(loop, whole());
  }
}

constexpr const char* kServer = R"(
import asyncio, sys, websockets

async def serve(socket):
    try:
        async for message in socket:
            if message == "leave":
                await socket.close(4004, "left")
            elif message == "fragments":
                await socket.send(["one ", "two ", "three"])
            elif message == "ping":
                await asyncio.wait_for(await socket.ping(b"1234"), 10)
                await socket.send("pinged")
            elif message == "vanish":
                socket.transport.abort()
            else:
                await socket.send(message)
    except websockets.ConnectionClosed:
        pass

async def main():
    compression = sys.argv[1] if sys.argv[1] != "none" else None
    async with websockets.serve(serve, "127.0.0.1", 0, compression=compression, max_size=None,
                                subprotocols=["v1"]) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()

asyncio.run(main())
)";

Task<Result<ws::Close>> connect_to(net::Address where, ws::ClientTalk talk, bool deflate) {
  ws::ClientOptions options;
  options.subprotocols = {"v1"};
  if (deflate) options.deflate.emplace();
  net::TcpStream stream = co_await ok(net::TcpStream::connect(where));
  Task<Result<ws::Close>> talking =
      ws::connect(std::move(stream), "127.0.0.1", "/", std::move(talk), std::move(options));
  co_return co_await std::move(talking);
}

Task<void> talk_to_python(bool deflate) {
  ProcessOptions options(kPython, {"-c", kServer, deflate ? "deflate" : "none"});
  options.out = Redirect::pipe();
  Process python = or_throw(Process::spawn(std::move(options)));
  std::string line;
  while (line.find('\n') == line.npos) {
    std::array<std::byte, 64> buffer;
    std::size_t count = or_throw(co_await within(30s, python.out.read(buffer)));
    if (count == 0) throw std::runtime_error("the server in Python ended before it served");
    line.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
  net::Address where = net::Address::loopback_v4(static_cast<std::uint16_t>(std::stoi(line)));

  ws::ClientTalk echo = [&](ws::Connection& socket) -> Task<void> {
    EXPECT_EQ(socket.subprotocol(), "v1");
    EXPECT_EQ(socket.is_compressed(), deflate);
    for (std::size_t size : {0, 1, 125, 126, 65'535, 65'536, 900'000}) {
      ws::Message message(ws::Kind::binary, std::string(size, '\0'));
      for (std::size_t i = 0; i < size; ++i) message.data[i] = static_cast<char>(i * 7 % 251);
      EXPECT_TRUE((co_await socket.send(message)).has_value());
      Result<ws::Message> back = co_await within(30s, socket.receive());
      EXPECT_TRUE(back && *back == message) << size;
    }
    EXPECT_TRUE((co_await socket.send("fragments")).has_value());
    EXPECT_EQ((co_await within(30s, socket.receive())).value().data, "one two three");
    EXPECT_TRUE((co_await socket.send("ping")).has_value());
    EXPECT_EQ((co_await within(30s, socket.receive())).value().data, "pinged");
  };
  Result<ws::Close> end = co_await connect_to(where, echo, deflate);
  EXPECT_EQ(end, ws::Close(1000, ""));

  ws::ClientTalk leave = [&](ws::Connection& socket) -> Task<void> {
    EXPECT_TRUE((co_await socket.send("leave")).has_value());
    EXPECT_EQ((co_await within(30s, socket.receive())).error(), ws::Error::closed);
  };
  end = co_await connect_to(where, leave, deflate);
  EXPECT_EQ(end, ws::Close(4004, "left"));

  ws::ClientTalk vanish = [&](ws::Connection& socket) -> Task<void> {
    EXPECT_TRUE((co_await socket.send("vanish")).has_value());
    Result<ws::Message> none = co_await within(30s, socket.receive());
    EXPECT_FALSE(none);
    EXPECT_NE(none.error(), ws::Error::closed);
  };
  end = co_await connect_to(where, vanish, deflate);
  EXPECT_EQ(end.value().code, 1006);

  Result<ExitStatus> stopped = co_await python.terminate();
  EXPECT_TRUE(stopped);
}

TEST_F(WebSocketPeers, APythonServerOfOurs) {
  for (bool deflate : {false, true}) {
    EventLoop loop;
    run(loop, talk_to_python(deflate));
  }
}

}  // namespace
