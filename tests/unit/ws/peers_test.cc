// SPDX-License-Identifier: MIT
// Python's websockets (Debian: python3-websockets) and npm's ws, as clients of ours and as servers for ours, over loopback.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/http_peers.h"
#include "support/ws_fixture.h"
#include "weft/net/buffered.h"
#include "weft/net/tcp.h"
#include "weft/run/process.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;

constexpr const char* kPythonClient = R"(
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
    async with websockets.connect(uri, compression=compression) as socket:
        await socket.close(4001, "enough")
    assert socket.close_code == 4001, socket.close_code

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

constexpr const char* kNodeClient = R"(
const assert = require("assert");
const WebSocket = require("ws");
const uri = process.argv[1];

// A connection whose messages and whose end can be awaited.
async function open(options) {
  const socket = new WebSocket(uri, options);
  const came = [], waiting = [];
  socket.on("message", (data, isBinary) => {
    const message = isBinary ? data : data.toString();
    waiting.length ? waiting.shift()(message) : came.push(message);
  });
  socket.receive = () => came.length ? came.shift() : new Promise((resolve) => waiting.push(resolve));
  socket.closed = new Promise((resolve) => socket.on("close", resolve));
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  return socket;
}

async function talk(perMessageDeflate) {
  const socket = await open({perMessageDeflate});
  assert.equal(socket.extensions.includes("permessage-deflate"), Boolean(perMessageDeflate));
  for (const size of [0, 1, 125, 126, 65535, 65536, 900000]) {
    const text = "grüße ".repeat(size / 6 + 1).slice(0, size);
    socket.send(text);
    assert.equal(await socket.receive(), text);
    const data = Buffer.from(Uint8Array.from({length: size}, (_, i) => i * 7 % 251));
    socket.send(data);
    assert.ok(data.equals(await socket.receive()), size);
  }
  socket.send("frag", {fin: false});
  socket.send("ments ", {fin: false});
  socket.send("of text");
  assert.equal(await socket.receive(), "fragments of text");
  const pong = new Promise((resolve) => socket.once("pong", resolve));
  socket.ping("are you there");
  assert.equal((await pong).toString(), "are you there");
  for (let i = 0; i < 100; ++i) socket.send(String(i));
  for (let i = 0; i < 100; ++i) assert.equal(await socket.receive(), String(i));
  socket.close(1000);
  assert.equal(await socket.closed, 1000);
  const other = await open({perMessageDeflate});
  other.close(4001, "enough");
  assert.equal(await other.closed, 4001);
}

async function tooBig() {
  const socket = await open({});
  socket.on("error", () => {});  // the rest of it meets a closed connection
  socket.send("x".repeat(3000000));
  assert.equal(await socket.closed, 1009);
}

(async () => {
  await talk(false);
  await talk({threshold: 0});
  await tooBig();
  console.log("all is well");
})();
)";

constexpr const char* kPythonServer = R"(
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

constexpr const char* kNodeServer = R"(
const {WebSocketServer} = require("ws");
const server = new WebSocketServer({
  host: "127.0.0.1",
  port: 0,
  maxPayload: 0,
  perMessageDeflate: process.argv[1] === "deflate" ? {threshold: 0} : false,
  handleProtocols: (offered) => offered.has("v1") ? "v1" : false,
});
server.on("listening", () => console.log(server.address().port));
server.on("connection", (socket) => socket.on("message", (data, isBinary) => {
  const answers = {
    leave: () => socket.close(4004, "left"),
    fragments: () => {
      socket.send("one ", {fin: false});
      socket.send("two ", {fin: false});
      socket.send("three");
    },
    ping: () => {
      socket.once("pong", (mark) => socket.send(mark.toString() === "1234" ? "pinged" : "not ours"));
      socket.ping("1234");
    },
    vanish: () => socket.terminate(),
  };
  const answer = isBinary ? null : answers[data.toString()];
  answer ? answer() : socket.send(data, {binary: isBinary});
}));
)";

struct Peer {
  const char* name;
  const char* program;
  const char* script_option;
  const char* directory;  // where it is started
  const char* probe;
  const char* client;
  const char* server;
  const char* package;  // what it needs

  [[nodiscard]] ProcessOptions run_script(const char* script, std::string argument = {}) const {
    ProcessOptions options(program, {script_option, script, std::move(argument)});
    options.working_directory = directory;
    return options;
  }
};

constexpr Peer kPeers[] = {
    // Debian's own, which has Debian's packages, whatever else is first in PATH.
    {"Python", "/usr/bin/python3", "-c", "", "import websockets", kPythonClient, kPythonServer,
     "Python's websockets"},
    {"Node", "node", "-e", WEFT_TEST_NPM, "require('ws')", kNodeClient, kNodeServer, "npm's ws"},
};

class WebSocketPeers : public ::testing::TestWithParam<Peer> {
 protected:
  void SetUp() override {
    EventLoop loop;
    Result<Finished> looked = run(loop, run_process(GetParam().run_script(GetParam().probe)));
    ASSERT_TRUE(looked && looked->status.success())
        << "this test needs " << GetParam().package
        << ", which script/setup installs: " << (looked ? looked->err : looked.error().message());
  }
};

TEST_P(WebSocketPeers, AClientOfOurs) {
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
        ProcessOptions client = GetParam().run_script(
            GetParam().client, "ws://127.0.0.1:" + std::to_string(port) + "/");
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

ws::ClientOptions client_options(bool deflate) {
  ws::ClientOptions options;
  options.subprotocols = {"v1"};
  if (deflate) options.deflate.emplace();
  return options;
}

Task<Result<ws::Close>> connect_to(net::Address where, ws::ClientTalk talk, bool deflate) {
  ws::ClientOptions options = client_options(deflate);
  net::TcpStream stream = co_await ok(net::TcpStream::connect(where));
  Task<Result<ws::Close>> talking =
      ws::connect(std::move(stream), "127.0.0.1", "/", talk, std::move(options));
  co_return co_await std::move(talking);
}

Task<void> talk_to(const Peer& peer, bool deflate) {
  ProcessOptions options = peer.run_script(peer.server, deflate ? "deflate" : "none");
  options.out = Redirect::pipe();
  Process server = or_throw(Process::spawn(std::move(options)));
  std::string line;
  while (line.find('\n') == line.npos) {
    std::array<std::byte, 64> buffer;
    std::size_t count = or_throw(co_await within(30s, server.out.read(buffer)));
    if (count == 0) throw std::runtime_error("the server ended before it served");
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
    EXPECT_EQ(socket.subprotocol(), "v1");
    EXPECT_TRUE((co_await socket.send("leave")).has_value());
    EXPECT_EQ((co_await within(30s, socket.receive())).error(), ws::Error::closed);
  };
  // By a URL and a name, of which the server has one of two addresses.
  std::string url = "ws://localhost:" + std::to_string(where.port()) + "/";
  Task<Result<ws::Close>> leaving = ws::connect(url, leave, client_options(deflate));
  end = co_await std::move(leaving);
  EXPECT_EQ(end, ws::Close(4004, "left"));

  ws::ClientTalk vanish = [&](ws::Connection& socket) -> Task<void> {
    EXPECT_TRUE((co_await socket.send("vanish")).has_value());
    Result<ws::Message> none = co_await within(30s, socket.receive());
    EXPECT_FALSE(none);
    EXPECT_NE(none.error(), ws::Error::closed);
  };
  end = co_await connect_to(where, vanish, deflate);
  EXPECT_EQ(end.value().code, 1006);

  Result<ExitStatus> stopped = co_await server.terminate();
  EXPECT_TRUE(stopped);
}

TEST_P(WebSocketPeers, AServerForOurs) {
  for (bool deflate : {false, true}) {
    EventLoop loop;
    run(loop, talk_to(GetParam(), deflate));
  }
}

// A proxy between our client and our server: it hands on the offer to upgrade, and then bytes, in pieces of its own.
TEST(WebSocketPeersNginx, BetweenOurTwoEnds) {
  weft::test::Served served;
  ws::Endpoint endpoint([](ws::Connection& socket, const http::Request& request) -> Task<void> {
    EXPECT_EQ(request.query_value("who"), "me");
    while (true) {
      Result<ws::Message> message = co_await socket.receive();
      if (!message) co_return;
      Result<void> sent = co_await socket.send(*message);
      if (!sent) co_return;
    }
  });
  served.routes.get("/socket", endpoint);
  served([&](std::string at, http::Server&) -> Task<void> {
    weft::test::Nginx nginx(
        http::Scheme::http,
        "    location /ours/ { proxy_pass " + at +
            "/; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; "
            "proxy_set_header Connection upgrade; }\n");
    Process process = co_await weft::test::started(nginx);
    net::Address where = net::Address::loopback_v4(nginx.port);
    net::TcpStream stream = or_throw(co_await net::TcpStream::connect(where));
    ws::ClientTalk echo = [](ws::Connection& socket) -> Task<void> {
      for (std::size_t size : {0, 1, 126, 65'536, 900'000}) {
        ws::Message message(ws::Kind::binary, std::string(size, 'w'));
        EXPECT_TRUE((co_await socket.send(message)).has_value());
        Result<ws::Message> back = co_await within(30s, socket.receive());
        EXPECT_TRUE(back && *back == message) << size;
      }
    };
    Task<Result<ws::Close>> talking =
        ws::connect(std::move(stream), "localhost", "/ours/socket?who=me", echo);
    Result<ws::Close> end = co_await std::move(talking);
    EXPECT_EQ(end, ws::Close(1000, ""));
    // Who does not ask for an upgrade is told so, by our server.
    http::Client client(weft::test::direct());
    std::string got = co_await weft::test::fetch(client, nginx.at("/ours/socket?who=me"));
    EXPECT_TRUE(got.starts_with("4")) << got;
    Result<ExitStatus> ended = co_await process.terminate();
    EXPECT_TRUE(ended.has_value());
  });
}

INSTANTIATE_TEST_SUITE_P(WebSocket, WebSocketPeers, ::testing::ValuesIn(kPeers),
                         [](const auto& peer) { return std::string(peer.param.name); });

}  // namespace
