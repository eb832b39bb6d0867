// SPDX-License-Identifier: MIT
// The Client against servers over TCP, with and without TLS: our own, nginx, and Python's.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/drivers.h"
#include "support/http_peers.h"
#include "weft/http/client.h"
#include "weft/net/error.h"
#include "weft/net/serve.h"
#include "weft/net/tcp.h"
#include "weft/run/process.h"
#include "weft/tls/error.h"
#include "weft/tls/stream.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;

// --- Our own server ---------------------------------------------------------------------------------

class HttpClientOverTcp : public ::testing::TestWithParam<Scheme> {};
class HttpClientPeers : public ::testing::TestWithParam<Scheme> {};
std::string name_of(const ::testing::TestParamInfo<Scheme>& scheme) {
  return std::string(to_string(scheme.param));
}
INSTANTIATE_TEST_SUITE_P(Both, HttpClientOverTcp, ::testing::Values(Scheme::http, Scheme::https),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Both, HttpClientPeers, ::testing::Values(Scheme::http, Scheme::https),
                         name_of);

TEST_P(HttpClientOverTcp, TalksToOurServer) {
  Served served(GetParam());
  served([&](std::string at, Server& server) -> Task<void> {
    Client client(direct());
    for (int i = 0; i < 20; ++i) {
      std::string got = co_await fetch(client, at + "/");
      EXPECT_EQ(got, "200 Hello.\n");
    }
    EXPECT_EQ(server.connections(), 1u) << "one connection for all";
    std::string got = co_await fetch(client, at + "/none");
    EXPECT_TRUE(got.starts_with("404 ")) << got;
    for (std::size_t size : {0, 1, 100, 100'000, 3'000'000}) {
      std::string text = pattern(size);
      ClientRequest request(Method::post, or_throw(Url::parse(at + "/echo")), {}, text);
      ClientResponse response = or_throw(co_await client.request(std::move(request)));
      std::string back = or_throw(co_await response.body().read_all());
      EXPECT_TRUE(back == text) << size;
    }
    std::string text = pattern(1'000'000);
    auto pieces = [&](BodyWriter& out) -> Task<Result<void>> {
      for (std::size_t i = 0; i < text.size(); i += 70'000) {
        Result<void> written = co_await out.write(std::string_view(text).substr(i, 70'000));
        if (!written) co_return written;
      }
      co_return {};
    };
    ClientRequest request(Method::post, or_throw(Url::parse(at + "/echo")), {},
                          RequestBody::stream(pieces));
    request.expects_continue = true;
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    std::string back = or_throw(co_await response.body().read_all());
    EXPECT_TRUE(back == text);
    got = co_await fetch(client, at + "/large");
    EXPECT_EQ(got.size(), 4 + 40u * 26'000);
    EXPECT_EQ(server.connections(), 1u);
  });
}

TEST_P(HttpClientOverTcp, ManyAtOnceShareAFewConnections) {
  Served served(GetParam());
  served([&](std::string at, Server& server) -> Task<void> {
    ClientOptions options = direct();
    options.limits.connections_per_origin_max = 4;
    Client client(options);
    std::vector<Task<std::string>> all;
    for (int i = 0; i < 100; ++i) all.push_back(fetch(client, at + (i % 10 == 0 ? "/large" : "/")));
    std::vector<std::string> got = co_await all_of(std::move(all));
    for (const std::string& each : got) EXPECT_TRUE(each.starts_with("200 ")) << each;
    EXPECT_LE(server.connections(), 4u);
    EXPECT_EQ(client.connections(), client.idle_connections());
  });
}

// What the server has closed meanwhile is seen before anything is sent on it: also what must not be repeated arrives.
TEST_P(HttpClientOverTcp, DoesNotUseAConnectionThatTheServerHasClosed) {
  Served served;
  served([&](std::string, Server&) -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    std::string at = std::string(to_string(GetParam())) + "://" +
                     or_throw(listener.local_address()).to_string() + "/";
    tls::ServerContext context = server_context();
    std::vector<std::unique_ptr<Transport>> peers;
    auto accept = [&]() -> Task<std::unique_ptr<Transport>> {
      net::TcpStream stream = or_throw(co_await listener.accept());
      if (GetParam() == Scheme::http) {
        co_return std::make_unique<StreamTransport<net::TcpStream>>(std::move(stream));
      }
      auto secure = or_throw(co_await tls::accept(std::move(stream), context));
      using Secure = StreamTransport<tls::Stream<net::TcpStream>>;
      co_return std::make_unique<Secure>(std::move(secure));
    };
    // Says goodbye after its answer, and not in it.
    auto answer = [&]() -> Task<void> {
      peers.push_back(co_await accept());
      Transport& peer = *peers.back();
      std::string seen;
      while (!seen.ends_with("an order")) {
        PooledBytes bytes = or_throw(co_await peer.read());
        seen.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      std::array<net::Part, 1> parts{net::Part("HTTP/1.1 204 No Content\r\n\r\n")};
      Result<std::size_t> count = co_await peer.write_some(parts);
      EXPECT_EQ(or_throw(count), parts.front().size());
      Result<void> ended = co_await peer.shutdown_write();
      or_throw(ended);
    };
    ClientOptions options = direct();
    options.limits.head_timeout = 5s;
    Client client(options);
    auto order = [&]() -> Task<void> {
      ClientRequest request(Method::post, or_throw(Url::parse(at)), {}, "an order");
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_TRUE(response.has_value()) << response.error().message();
      EXPECT_EQ(client.idle_connections(), 1u);
    };
    for (int i = 0; i < 3; ++i) co_await all_of(answer(), order());
    EXPECT_EQ(peers.size(), 3u);
  });
}

TEST_P(HttpClientOverTcp, CancelledItClosesAndTheServerNotices) {
  Served served(GetParam());
  served([&](std::string at, Server& server) -> Task<void> {
    Client client(direct());
    auto first = co_await any_of(fetch(client, at + "/stuck"), served.is_stuck.wait());
    EXPECT_EQ(first.index(), 1u);
    EXPECT_EQ(client.connections(), 0u);
    // The others are served all the same.
    std::string got = co_await fetch(client, at + "/");
    EXPECT_EQ(got, "200 Hello.\n");
    EXPECT_EQ(server.connections(), 2u) << "its handler waits for something else";
  });
}

TEST(HttpClientErrors, OfTheWorldAreErrors) {
  Served served;
  served([&](std::string, Server&) -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    std::string nobody = "http://" + or_throw(listener.local_address()).to_string() + "/";
    listener.close();
    Client client(direct());
    Result<ClientResponse> response = co_await client.get(nobody);
    EXPECT_EQ(response.error(), std::errc::connection_refused);
    EXPECT_EQ(client.connections(), 0u);
  });
}

// RFC 9112, 9.2: what comes while nothing is asked is nobody's answer.
TEST(HttpClientPeer, AnAnswerThatNobodyAskedForIsNotTaken) {
  for (Driver driver : drivers_here()) {
    SCOPED_TRACE(to_string(driver));
    EventLoop loop({.driver = driver});
    auto root = [&]() -> Task<void> {
      net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
      std::string at = "http://" + or_throw(listener.local_address()).to_string() + "/";
      int connections = 0;
      Event has_read, has_sent;
      auto answer = [&](net::TcpStream stream) -> Task<void> {
        bool is_first = ++connections == 1;
        std::array<std::byte, 1000> buffer;
        Result<std::size_t> count = co_await stream.read_some(buffer);
        std::string_view good = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
        Result<void> sent = co_await net::write_all(stream, good);
        if (is_first) {
          co_await has_read.wait();
          std::string_view evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
          sent = co_await net::write_all(stream, evil);
          has_sent.set();
        }
        or_throw(sent);
        count = co_await stream.read_some(buffer);  // until the client closes
      };
      auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto serve = [&]() -> Task<void> {
          net::ServeLimits limits;
          co_await net::serve(listener, limits, answer);
        };
        nursery.start(serve);
        Client client(direct());
        std::string got = co_await fetch(client, at);
        EXPECT_EQ(got, "200 good");
        EXPECT_EQ(client.idle_connections(), 1u);
        has_read.set();
        co_await has_sent.wait();
        co_await sleep_for(5ms);
        got = co_await fetch(client, at);
        EXPECT_EQ(got, "200 good");
        EXPECT_EQ(connections, 2);
        co_return cancel;
      };
      co_await with_nursery(both);
    };
    run(loop, root());
  }
}

// --- Programs of others -----------------------------------------------------------------------------

TEST_P(HttpClientPeers, TalksToNginx) {
  if (!std::filesystem::exists("/usr/sbin/nginx")) FAIL() << "nginx is not installed (nginx-light)";
  Nginx nginx(GetParam());
  with_program(nginx.program(), nginx.port, [&](Process&) -> Task<void> {
    Client client(direct());
    // More than it answers on one connection.
    for (int i = 0; i < 23; ++i) {
      std::string got = co_await fetch(client, nginx.at("/"));
      EXPECT_EQ(got, "200 from nginx\n");
    }
    std::string got = co_await fetch(client, nginx.at("/large"));
    EXPECT_TRUE(got == "200 " + pattern(1'000'000));
    got = co_await fetch(client, nginx.at("/moved"));
    EXPECT_EQ(got, "200 from nginx\n");
    got = co_await fetch(client, nginx.at("/none"));
    EXPECT_EQ(got, "204 ");
    got = co_await fetch(client, nginx.at("/closes"));
    EXPECT_EQ(got, "200 bye");
    got = co_await fetch(client, nginx.at("/not-there"));
    EXPECT_TRUE(got.starts_with("404 ")) << got;
    got = co_await fetch(client, nginx.at("/gone"));
    std::error_code without_a_word = make_error_code(net::Error::unexpected_end);
    if (GetParam() == Scheme::https) without_a_word = make_error_code(tls::Error::truncated);
    EXPECT_EQ(got, without_a_word.message());
    ClientRequest head(Method::head, or_throw(Url::parse(nginx.at("/large"))));
    ClientResponse response = or_throw(co_await client.request(std::move(head)));
    EXPECT_EQ(response.headers().find("content-length"), "1000000");
    EXPECT_EQ(response.body().length(), 0u);
    std::vector<Task<std::string>> all;
    for (int i = 0; i < 50; ++i) all.push_back(fetch(client, nginx.at("/")));
    std::vector<std::string> answers = co_await all_of(std::move(all));
    for (const std::string& each : answers) EXPECT_EQ(each, "200 from nginx\n");
    EXPECT_EQ(client.connections(), client.idle_connections());
  });
}

TEST_P(HttpClientPeers, AServerThatIsKilledMidwayIsAnError) {
  if (!std::filesystem::exists("/usr/sbin/nginx")) FAIL() << "nginx is not installed (nginx-light)";
  Nginx nginx(GetParam());
  with_program(nginx.program(), nginx.port, [&](Process& process) -> Task<void> {
    Client client(direct());
    std::string got = co_await fetch(client, nginx.at("/"));  // one that is kept
    EXPECT_EQ(got, "200 from nginx\n");
    ClientResponse response = or_throw(co_await client.get(nginx.at("/slow")));
    EXPECT_EQ(response.status(), 200);
    or_throw(process.kill(SIGKILL));
    Result<std::string> body = co_await response.body().read_all();
    EXPECT_FALSE(body.has_value()) << "a body that is cut off is not a body";
    EXPECT_EQ(client.connections(), client.idle_connections());
    Result<ExitStatus> ended = co_await process.wait();
    EXPECT_EQ(or_throw(ended).signal(), SIGKILL);
    Result<ClientResponse> next = co_await client.get(nginx.at("/"));
    EXPECT_EQ(next.error(), std::errc::connection_refused);
    EXPECT_EQ(client.connections(), 0u);
  });
}

TEST(HttpClientPython, TalksToIt) {
  TemporaryDirectory directory;
  directory.write("index.html", "from Python\n");
  directory.write("large", pattern(500'000));
  std::uint16_t port = free_port();
  for (const char* version : {"HTTP/1.0", "HTTP/1.1"}) {
    ProcessOptions program(
        "python3", {"-m", "http.server", "--bind", "127.0.0.1", "-d", directory.path().string(),
                    "-p", version, std::to_string(port)});
    if (version == std::string("HTTP/1.0")) {
      // The option is as new as Python 3.11; 1.0 is what it speaks without.
      program.arguments.erase(program.arguments.begin() + 6, program.arguments.begin() + 8);
    }
    program.out = Redirect::null();
    program.err = Redirect::null();
    with_program(std::move(program), port, [&](Process&) -> Task<void> {
      Client client(direct());
      std::string at = "http://localhost:" + std::to_string(port);
      for (int i = 0; i < 5; ++i) {
        std::string got = co_await fetch(client, at + "/");
        EXPECT_EQ(got, "200 from Python\n");
      }
      std::string got = co_await fetch(client, at + "/large");
      EXPECT_TRUE(got == "200 " + pattern(500'000));
      got = co_await fetch(client, at + "/none");
      EXPECT_TRUE(got.starts_with("404 ")) << got;
      EXPECT_EQ(client.connections(), client.idle_connections());
    });
    port = free_port();
  }
}

}  // namespace
