// SPDX-License-Identifier: MIT
// HTTP over TLS: who is let in, who is refused, and what a handshake that does not end holds up. What both schemes have in common is in
// client_peers_test.cc.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/drivers.h"
#include "support/http_peers.h"
#include "support/loop_fixture.h"
#include "weft/http/error.h"
#include "weft/http/static_files.h"
#include "weft/net/memory_stream.h"
#include "weft/testing/virtual_loop.h"
#include "weft/tls/error.h"
#include "weft/tls/stream.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;

// What the test's own socket writes to and reads from the server.
Task<std::string> say(net::TcpStream& stream, std::string_view text) {
  Result<void> sent = co_await net::write_all(stream, text);
  std::string all;
  std::array<std::byte, 1000> buffer;
  while (sent) {
    Result<std::size_t> count = co_await stream.read_some(buffer);
    if (!count || *count == 0) break;
    all.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
  co_return all;
}

net::Address address_of(std::string_view url) {
  Url at = or_throw(Url::parse(url));
  return net::Address::loopback_v4(at.port());
}

ClientOptions trusting(tls::ClientOptions options) {
  ConnectorOptions connector{.tls = client_context(std::move(options))};
  return {.proxies = {}, .connector = std::make_shared<TcpConnector>(connector)};
}

TEST(Https, TheHandlerKnows) {
  Served served(Scheme::https);
  served.routes.get(
      "/who", [](const Request&, Response& response, Connection& connection) -> Task<void> {
        response.body("text/plain", connection.is_encrypted() ? "encrypted" : "plain");
        co_return;
      });
  served([&](std::string at, Server&) -> Task<void> {
    Client client(direct());
    std::string got = co_await fetch(client, at + "/who");
    EXPECT_EQ(got, "200 encrypted");
  });
}

TEST(Https, NamesAreResolved) {
  Served served(Scheme::https);
  served([&](std::string at, Server&) -> Task<void> {
    Client client(direct());
    std::string got = co_await fetch(client, "https://localhost" + at.substr(at.rfind(':')) + "/");
    EXPECT_EQ(got, "200 Hello.\n");
  });
}

TEST(Https, WhoIsNotTrustedIsNotAsked) {
  Served served(Scheme::https);
  bool asked = false;
  served.options.access_log = [&](const AccessRecord&) { asked = true; };
  std::vector<std::string> refused;
  served.options.handshake_log = [&](const std::optional<net::Address>& peer,
                                     std::string_view why) {
    EXPECT_TRUE(peer.has_value());
    refused.emplace_back(why);
  };
  served([&](std::string at, Server& server) -> Task<void> {
    Authority other("somebody else");
    Client client(trusting({.system_roots = false, .roots_pem = other.pem()}));
    Result<ClientResponse> response = co_await client.get(at + "/");
    EXPECT_TRUE(!response && response.error() == tls::Error::certificate_unknown_authority);
    EXPECT_EQ(client.connections(), 0u);
    // The system's roots, which are asked if nobody says otherwise, do not vouch for it either.
    Client by_default(ClientOptions{.proxies = {}});
    response = co_await by_default.get(at + "/");
    EXPECT_TRUE(!response && response.error() == tls::Error::certificate_unknown_authority);
    while (server.connections() > 0) co_await sleep_for(1ms);
  });
  EXPECT_FALSE(asked);
  ASSERT_EQ(refused.size(), 2u);
  for (const std::string& why : refused) {
    EXPECT_TRUE(why.starts_with("TLS client: ")) << why;
  }
}

TEST(Https, AnotherNameIsRefused) {
  tls::ServerOptions elsewhere{.identity = authority().issue("other", "DNS:elsewhere.test")};
  Served served(Scheme::https);
  served.options.tls = server_context(elsewhere);
  served([&](std::string at, Server&) -> Task<void> {
    Client client(direct());
    Result<ClientResponse> response = co_await client.get(at + "/");
    EXPECT_TRUE(!response && response.error() == tls::Error::certificate_wrong_host);
  });
}

TEST(Https, WhoSpeaksPlainHttpIsShownTheDoor) {
  Served served(Scheme::https);
  std::vector<std::string> refused;
  served.options.handshake_log = [&](const auto&, std::string_view why) {
    refused.emplace_back(why);
  };
  served([&](std::string at, Server&) -> Task<void> {
    net::TcpStream plain = or_throw(co_await net::TcpStream::connect(address_of(at)));
    std::string answer = co_await say(plain, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(answer.find("Hello"), answer.npos);
    Client client(direct());
    std::string got = co_await fetch(client, at + "/");
    EXPECT_EQ(got, "200 Hello.\n") << "the others are served";
  });
  EXPECT_EQ(refused.size(), 1u);
}

TEST(Https, AHandshakeThatDoesNotEndHoldsNobodyUp) {
  tls::ServerOptions patient = server_options();
  patient.handshake_timeout = 1h;
  Served served(Scheme::https);
  served.options.tls = server_context(patient);
  served.options.limits.drain_timeout = 1h;
  int failed = 0;
  served.options.handshake_log = [&](const auto&, std::string_view) { ++failed; };
  // Outlives the server, whose end it does not help along.
  UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  served([&](std::string at, Server& server) -> Task<void> {
    net::Address where = address_of(at);
    EXPECT_EQ(::connect(silent.get(), &where.native(), where.native_size()), 0);
    Client client(direct());
    std::string got = co_await fetch(client, at + "/");
    EXPECT_EQ(got, "200 Hello.\n");
    EXPECT_EQ(server.connections(), 2u) << "who shakes hands counts";
    // And now the server stops: Served has a limit of its own, far below that of the drain.
  });
  EXPECT_EQ(failed, 0) << "it was not the peer's fault";
}

TEST(Https, AHandshakeHasItsTime) {
  tls::ServerOptions hurried = server_options();
  hurried.handshake_timeout = 20ms;
  Served served(Scheme::https);
  served.options.tls = server_context(hurried);
  Event failed;
  served.options.handshake_log = [&](const auto&, std::string_view) { failed.set(); };
  served([&](std::string at, Server&) -> Task<void> {
    net::TcpStream silent = or_throw(co_await net::TcpStream::connect(address_of(at)));
    co_await failed.wait();
    std::array<std::byte, 10> buffer;
    Result<std::size_t> count = co_await silent.read_some(buffer);
    EXPECT_FALSE(count && *count > 0);
  });
}

// Runs body(url, connections), a coroutine, while answer(stream), one too, is called for each connection of a server that is none of ours.
template <class Answer, class Body>
void with_other_server(Answer answer, Body body) {
  Served served;
  served([&](std::string, Server&) -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    std::string at = "https://" + or_throw(listener.local_address()).to_string() + "/";
    tls::ServerContext context = server_context();
    int connections = 0;
    auto accept = [&](net::TcpStream stream) -> Task<void> {
      ++connections;
      tls::Stream<net::TcpStream> secure =
          or_throw(co_await tls::accept(std::move(stream), context));
      co_await answer(secure);
    };
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> {
        net::ServeLimits limits;
        co_await net::serve(listener, limits, accept);
      };
      nursery.start(serve);
      co_await body(at, connections);
      co_return cancel;
    };
    co_await with_nursery(both);
  });
}

// RFC 9112, 9.3.1. A connection was kept, and the server lets it go when it reads the next request: without close_notify, as many do.
TEST(Https, AKeptConnectionThatIsCutIsReplaced) {
  auto answer_one = [](tls::Stream<net::TcpStream>& stream) -> Task<void> {
    std::array<std::byte, 1000> buffer;
    Result<std::size_t> count = co_await stream.read_some(buffer);
    EXPECT_GT(or_throw(count), 0u);
    Result<void> sent = co_await net::write_all(stream, "HTTP/1.1 204 No Content\r\n\r\n");
    or_throw(sent);
    count = co_await stream.read_some(buffer);
    stream.close();
  };
  with_other_server(answer_one, [](std::string at, const int& connections) -> Task<void> {
    Client client(direct());
    for (int i = 1; i <= 3; ++i) {
      std::string got = co_await fetch(client, at);
      EXPECT_EQ(got, "204 ");
      EXPECT_EQ(connections, i);
    }
  });
}

// RFC 9112, 9.2. What came behind an answer may be in the record that was decrypted already, where no socket tells of it.
TEST(Https, AConnectionWithSomethingBehindItsAnswerIsNotKept) {
  // The answer fills the client's first read to the byte.
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 8000\r\nX-Fill: ";
  answer.append(PooledBytes::kBytes - 8000 - 4 - answer.size(), 'x').append("\r\n\r\n");
  answer.append(8000, 'b').append("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  auto answer_all = [&](tls::Stream<net::TcpStream>& stream) -> Task<void> {
    std::array<std::byte, 1000> buffer;
    while (true) {
      Result<std::size_t> count = co_await stream.read_some(buffer);
      if (!count || *count == 0) co_return;
      Result<void> sent = co_await net::write_all(stream, answer);
      if (!sent) co_return;
    }
  };
  with_other_server(answer_all, [](std::string at, const int& connections) -> Task<void> {
    Client client(direct());
    for (int i = 1; i <= 3; ++i) {
      std::string got = co_await fetch(client, at);
      EXPECT_EQ(got, "200 " + std::string(8000, 'b'));
      EXPECT_EQ(connections, i);
    }
  });
}

// What is in a record counts as written, for TLS; whether the peer takes it is what the timeout is about.
TEST(Https, AWriteThatThePeerDoesNotTakeTimesOut) {
  weft::testing::VirtualLoop loop;
  auto root = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams({.bytes_max = 2000});
    tls::ServerContext ours = server_context();
    tls::ClientContext theirs = client_context();
    auto both = or_throw(co_await all_of(tls::accept(std::move(near), ours),
                                         tls::connect(std::move(far), theirs, "localhost")));
    auto& [accepted, peer] = both;
    StreamTransport transport(std::move(accepted));
    std::string text(5000, 'x');
    std::array<net::Part, 1> parts{net::Part(text)};
    Result<std::size_t> count = co_await transport.write_some_within(1s, parts);
    EXPECT_TRUE(!count && count.error() == std::errc::timed_out);
    transport.close();
    peer.close();
  };
  run(loop, root());
}

// Two ends of TLS, on a wire that holds 2000 bytes.
struct Ends {
  tls::Stream<net::MemoryStream> near, far;
};
Task<Ends> shaken_hands() {
  auto [one, other] = net::memory_streams({.bytes_max = 2000});
  tls::ServerContext ours = server_context();
  tls::ClientContext theirs = client_context();
  auto both = or_throw(co_await all_of(tls::accept(std::move(one), ours),
                                       tls::connect(std::move(other), theirs, "localhost")));
  auto& [accepted, peer] = both;
  co_return Ends{std::move(accepted), std::move(peer)};
}

// Who gives each wait up and begins another has the same peer before him.
TEST(Https, AWaitThatIsGivenUpDoesNotBeginAnew) {
  weft::testing::VirtualLoop loop;
  auto root = [&]() -> Task<void> {
    Ends ends = co_await shaken_hands();
    StreamTransport transport(std::move(ends.near));
    std::string text(100'000, 'x');
    std::array<net::Part, 1> parts{net::Part(text)};
    std::span<net::Part> rest(parts);
    TimePoint start = now();
    std::error_code said;
    for (int i = 0; i < 10 && !said; ++i) {
      std::span<const net::Part> list(rest);
      auto count = co_await timeout(300ms, transport.write_some_within(1s, list));
      if (count && *count) net::drop_front(rest, **count);
      if (count && !*count) said = count->error();
    }
    EXPECT_EQ(said, std::errc::timed_out);
    EXPECT_EQ(now() - start, 1s);
    transport.close();
    ends.far.close();
  };
  run(loop, root());
}

// A record is large, and a peer slow: as long as it takes some of it, it is not late.
TEST(Https, APeerThatTakesALittleIsNotLate) {
  for (int takes : {1000, 5}) {
    weft::testing::VirtualLoop loop;
    auto root = [&]() -> Task<void> {
      Ends ends = co_await shaken_hands();
      StreamTransport transport(std::move(ends.near));
      std::string text(16'000, 'x');
      std::array<net::Part, 1> parts{net::Part(text)};
      std::span<const net::Part> list(parts);
      TimePoint start = now();
      auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto take = [&]() -> Task<void> {
          std::array<std::byte, 100> buffer;
          for (int i = 0; i < takes; ++i) {
            co_await sleep_for(500ms);
            Result<std::size_t> count = co_await ends.far.transport().read_some(buffer);
            or_throw(count);
          }
        };
        nursery.start(take);
        Result<std::size_t> count = co_await transport.write_some_within(1s, list);
        if (takes == 5) {
          EXPECT_TRUE(!count && count.error() == std::errc::timed_out);
          EXPECT_EQ(now() - start, 5 * 500ms + 1s) << "from what it took last";
        } else {
          EXPECT_EQ(count.value_or(0), text.size());
          EXPECT_GT(now() - start, 60s);
        }
        co_return cancel;
      };
      co_await with_nursery(body);
      transport.close();
      ends.far.close();
    };
    run(loop, root());
  }
}

// A server that shakes hands, and reads nothing then.
class Unmoved final : public Connector {
 public:
  explicit Unmoved(std::vector<tls::Stream<net::MemoryStream>>& others) : others_(others) {}
  Task<Result<std::unique_ptr<Transport>>> connect(const Endpoint&) override {
    Ends ends = co_await shaken_hands();
    others_.push_back(std::move(ends.near));
    using Made = StreamTransport<tls::Stream<net::MemoryStream>>;
    co_return std::make_unique<Made>(std::move(ends.far));
  }
  Task<Result<std::unique_ptr<Transport>>> secure(std::unique_ptr<Transport> tunnel,
                                                  const Endpoint&) override {
    co_return tunnel;
  }

 private:
  std::vector<tls::Stream<net::MemoryStream>>& others_;
};

TEST(Https, AnUploadThatTheServerDoesNotTakeTimesOut) {
  weft::testing::VirtualLoop loop;
  auto root = [&]() -> Task<void> {
    std::vector<tls::Stream<net::MemoryStream>> others;
    ClientOptions options{.proxies = {}, .connector = std::make_shared<Unmoved>(others)};
    options.limits.write_timeout = 7s;
    Client client(options);
    ClientRequest request(Method::post, or_throw(Url::parse("https://localhost/")), {},
                          std::string(100'000, 'x'));
    TimePoint start = now();
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_TRUE(!response && response.error() == Error::write_timeout);
    EXPECT_EQ(now() - start, 7s);
  };
  run(loop, root());
}

// --- How it ends ----------------------------------------------------------------------------------------

using TcpTls = tls::Stream<net::TcpStream>;

Task<TcpTls> connect_to(net::Address where, tls::ClientOptions options) {
  net::TcpStream stream = or_throw(co_await net::TcpStream::connect(where));
  tls::ClientContext context = client_context(std::move(options));
  Result<TcpTls> secure = co_await tls::connect(std::move(stream), context, "localhost");
  co_return or_throw(std::move(secure));
}

// RFC 9112, 9.8: without close_notify a peer cannot tell an end from an attack.
TEST(Https, AStopSaysGoodbyeToWhoWaits) {
  for (Driver driver : drivers_here()) {
    SCOPED_TRACE(to_string(driver));
    Served served(Scheme::https);  // for its handlers
    EventLoop loop({.driver = driver});
    auto root = [&]() -> Task<void> {
      net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
      Server server(served.routes, served.options);
      TcpTls idle;
      std::array<std::byte, 1000> buffer;
      auto serving = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
        nursery.start(serve);
        net::Address where = or_throw(listener.local_address());
        idle = co_await connect_to(where, client_options());
        Result<void> sent = co_await net::write_all(idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        or_throw(sent);
        Result<std::size_t> count = co_await idle.read_some(buffer);
        EXPECT_GT(or_throw(count), 0u);
        co_await sleep_for(5ms);  // until it waits for the next
        co_return cancel;
      };
      co_await with_nursery(serving);
      Result<std::size_t> end = co_await idle.read_some(buffer);
      EXPECT_TRUE(end.has_value()) << end.error().message();
      EXPECT_EQ(end.value_or(99), 0u);
    };
    run(loop, root());
  }
}

// RFC 9110, 7.4. In the clear it is a 421: conformance_test.cc.
TEST(Https, ATargetThatSaysSoIsAnsweredFor) {
  Served served(Scheme::https);
  served([&](std::string at, Server&) -> Task<void> {
    TcpTls stream = co_await connect_to(address_of(at), client_options());
    Result<void> sent = co_await net::write_all(
        stream, "GET https://localhost/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    or_throw(sent);
    std::array<std::byte, 1000> buffer;
    Result<std::size_t> count = co_await stream.read_some(buffer);
    std::string_view text(reinterpret_cast<const char*>(buffer.data()), or_throw(count));
    EXPECT_EQ(text.substr(0, 17), "HTTP/1.1 200 OK\r\n");
  });
}

// RFC 9112, 9.6 and 9.8: the same, of a connection that the server ends by itself.
TEST(Https, AServerThatClosesSaysGoodbye) {
  const std::pair<std::string, int> cases[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nand more", 200},
      {"(nonsense)\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHo", 408},
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200},  // and then it waits for too long
  };
  Served served(Scheme::https);
  served.options.limits.idle_timeout = served.options.limits.head_timeout = 20ms;
  served.options.limits.linger_timeout = 20ms;
  served([&](std::string at, Server&) -> Task<void> {
    for (const auto& [request, status] : cases) {
      TcpTls stream = co_await connect_to(address_of(at), client_options());
      Result<void> sent = co_await net::write_all(stream, request);
      or_throw(sent);
      std::string text;
      std::array<std::byte, 1000> buffer;
      std::error_code end;
      while (!end) {
        Result<std::size_t> count = co_await stream.read_some(buffer);
        if (count && *count == 0) break;
        if (count) text.append(reinterpret_cast<const char*>(buffer.data()), *count);
        if (!count) end = count.error();
      }
      EXPECT_EQ(text.substr(0, 13), "HTTP/1.1 " + std::to_string(status) + " ") << request;
      EXPECT_EQ(end, std::error_code()) << request << end.message();
    }
  });
}

// RFC 9112, 9.8: a client says it before it closes, whether it would have kept the connection or not.
TEST(Https, AClientThatClosesSaysGoodbye) {
  enum class Reads { all, head };
  const std::pair<std::string, Reads> cases[] = {
      {"HTTP/1.1 204 No Content\r\n\r\n", Reads::all},  // kept
      {"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", Reads::all},
      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", Reads::head},
      {"HTTP/1.1 2000 OK\r\n\r\n", Reads::all},
  };
  for (const auto& [text, reads] : cases) {
    std::optional<Result<std::size_t>> end;
    Event ended;
    auto answer = [&](TcpTls& stream) -> Task<void> {
      std::array<std::byte, 1000> buffer;
      Result<std::size_t> count = co_await stream.read_some(buffer);
      EXPECT_GT(or_throw(count), 0u);
      Result<void> sent = co_await net::write_all(stream, text);
      or_throw(sent);
      end = co_await stream.read_some(buffer);
      ended.set();
    };
    with_other_server(answer, [&](std::string at, const int&) -> Task<void> {
      {
        Client client(direct());
        Result<ClientResponse> response = co_await client.get(at);
        if (response && reads == Reads::all) {
          Result<std::string> body = co_await response->body().read_all();
          EXPECT_TRUE(body.has_value());
        }
      }
      co_await ended.wait();
    });
    ASSERT_TRUE(end.has_value());
    EXPECT_TRUE(end->has_value()) << text << end->error().message();
  }
}

// RFC 9112, 9.8: where the end of the connection is that of the body, only one that was said counts. A length, or a last chunk, needs none.
TEST(Https, ACutIsNotTheEndOfABody) {
  std::error_code cut = make_error_code(tls::Error::truncated);
  struct Case {
    std::string answer;
    bool says_goodbye;
    std::error_code error;
  } const cases[] = {
      {"HTTP/1.1 200 OK\r\n\r\nabc", true, {}},
      {"HTTP/1.1 200 OK\r\n\r\nabc", false, cut},
      {"HTTP/1.0 200 OK\r\n\r\nabc", false, cut},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, {}},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false, {}},
      {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", false, cut},
      {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", true,
       make_error_code(net::Error::unexpected_end)},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false, cut},
  };
  for (const Case& each : cases) {
    auto answer = [&](TcpTls& stream) -> Task<void> {
      std::array<std::byte, 1000> buffer;
      Result<std::size_t> count = co_await stream.read_some(buffer);
      EXPECT_GT(or_throw(count), 0u);
      Result<void> sent = co_await net::write_all(stream, each.answer);
      if (sent && each.says_goodbye) sent = co_await stream.shutdown_write();
      or_throw(sent);
      stream.close();
    };
    with_other_server(answer, [&](std::string at, const int&) -> Task<void> {
      Client client(direct());
      Result<ClientResponse> got = co_await client.get(at);
      ClientResponse response = or_throw(std::move(got));
      Result<std::string> body = co_await response.body().read_all();
      if (each.error) {
        EXPECT_EQ(body.error(), each.error) << each.answer;
      } else {
        EXPECT_EQ(body, "abc") << each.answer;
      }
    });
  }
}

// RFC 9112, 8: a request that is cut is incomplete. That is the peer's doing, and not the handler's failure.
TEST(Https, ARequestThatIsCutIsBad) {
  Served served(Scheme::https);
  Event noted;
  int status = 0;
  served.options.access_log = [&](const AccessRecord& record) {
    status = record.status;
    noted.set();
  };
  LogCapture log;
  served([&](std::string at, Server&) -> Task<void> {
    TcpTls stream = co_await connect_to(address_of(at), client_options());
    Result<void> sent = co_await net::write_all(
        stream, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    or_throw(sent);
    sent = co_await stream.transport().shutdown_write();  // below TLS
    or_throw(sent);
    co_await noted.wait();
  });
  EXPECT_EQ(status, 400);
  for (const std::string& line : log.take()) {
    EXPECT_EQ(line.find("threw"), line.npos) << line;
  }
}

// What has come of an answer that breaks off arrives, and then a cut: neither an end by the book nor a reset, which could overtake it.
TEST(Https, AnAnswerThatBreaksOffIsCut) {
  Served served(Scheme::https);
  served.routes.post("/breaks", [](const Request&, Response& response) -> Task<void> {
    Result<void> written = co_await response.write(pattern(100'000));
    if (written) written = co_await response.flush();
    or_throw(written);
    throw std::runtime_error("on purpose");
  });
  LogCapture log;
  served([&](std::string at, Server&) -> Task<void> {
    TcpTls stream = co_await connect_to(address_of(at), client_options());
    std::string request = "POST /breaks HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n";
    request.append(100'000, 'b');
    Result<void> sent = co_await net::write_all(stream, request);
    or_throw(sent);
    std::size_t got = 0;
    std::error_code end;
    std::array<std::byte, 10'000> buffer;
    while (!end) {
      Result<std::size_t> count = co_await stream.read_some(buffer);
      if (count && *count == 0) break;
      if (count) got += *count;
      if (!count) end = count.error();
    }
    EXPECT_GT(got, 100'000u);
    EXPECT_EQ(end, tls::Error::truncated) << end.message();
  });
}

// The context offers what the server does not speak: somebody must hear of it.
TEST(Https, AProtocolThatIsNotSpokenHereIsTold) {
  Served served(Scheme::https);
  tls::ServerOptions offers = server_options();
  offers.alpn = {"h2", "http/1.1"};
  served.options.tls = server_context(offers);
  std::vector<std::string> refused;
  served.options.handshake_log = [&](const auto&, std::string_view why) {
    refused.emplace_back(why);
  };
  LogCapture log;
  served([&](std::string at, Server&) -> Task<void> {
    tls::ClientOptions asks = client_options();
    asks.alpn = {"h2"};
    for (int i = 0; i < 2; ++i) {
      TcpTls stream = co_await connect_to(address_of(at), asks);
      std::array<std::byte, 10> buffer;
      Result<std::size_t> count = co_await stream.read_some(buffer);
      EXPECT_FALSE(count && *count > 0);
    }
    Client client(direct());
    std::string got = co_await fetch(client, at + "/");
    EXPECT_EQ(got, "200 Hello.\n");
  });
  EXPECT_EQ(refused.size(), 2u);
  auto lines = log.take();
  ASSERT_EQ(lines.size(), 1u) << "once is enough";
  EXPECT_TRUE(lines[0].starts_with("http: ALPN has agreed on \"h2\"")) << lines[0];
}

TEST(Https, TheHandlerKnowsTheClientsCertificate) {
  Served served(Scheme::https);
  tls::ServerOptions asks = server_options();
  asks.client_certificate = tls::ClientCertificate::optional;
  asks.client_roots_pem = authority().pem();
  served.options.tls = server_context(asks);
  auto who = [](const Request&, Response& response, Connection& connection) -> Task<void> {
    std::optional<tls::PeerCertificate> certificate = connection.peer_certificate();
    response.body("text/plain", certificate ? certificate->subject : "nobody");
    co_return;
  };
  served.routes.get("/who", who);
  served([&](std::string at, Server&) -> Task<void> {
    Client unknown(direct());
    std::string got = co_await fetch(unknown, at + "/who");
    EXPECT_EQ(got, "200 nobody");
    tls::ClientOptions shows = client_options();
    shows.identity = authority().issue("alice", "DNS:alice");
    Client alice(trusting(shows));
    for (int i = 0; i < 2; ++i) {  // and when the session is resumed
      got = co_await fetch(alice, at + "/who");
      EXPECT_EQ(got, "200 CN=alice");
      alice.close_idle();
    }
    // One that nobody vouches for is not let in.
    Authority other("somebody else");
    shows.identity = other.issue("mallory", "DNS:mallory");
    Client mallory(trusting(shows));
    Result<ClientResponse> response = co_await mallory.get(at + "/who");
    EXPECT_FALSE(response.has_value());
  });
  Served plain;
  plain.routes.get("/who", who);
  plain([&](std::string at, Server&) -> Task<void> {
    Client client(direct());
    std::string got = co_await fetch(client, at + "/who");
    EXPECT_EQ(got, "200 nobody");
  });
}

// A proxy that opens tunnels, as other people's do: bytes in, bytes out.
Task<void> relay(net::TcpStream& from, net::TcpStream& to) {
  std::array<std::byte, 4096> buffer;
  while (true) {
    Result<std::size_t> count = co_await from.read_some(buffer);
    if (!count || *count == 0) break;
    std::span<const std::byte> rest = std::span(buffer).first(*count);
    Result<void> sent = co_await net::write_all(to, rest);
    if (!sent) break;
  }
  Result<void> ended = co_await to.shutdown_write();
  static_cast<void>(ended);
}

class TunnelProxy {
 public:
  explicit TunnelProxy(Nursery& nursery)
      : listener_(or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)))) {
    nursery.start(serve());
  }
  [[nodiscard]] std::string at() const { return or_throw(listener_.local_address()).to_string(); }
  int tunnels = 0;

 private:
  Task<void> serve() {
    auto open = [this](net::TcpStream client) -> Task<void> {
      std::string head;
      std::array<std::byte, 1> one;
      while (!head.ends_with("\r\n\r\n")) {
        Result<std::size_t> count = co_await client.read_some(one);
        if (!count || *count == 0) co_return;
        head += static_cast<char>(one[0]);
      }
      std::string where = head.substr(8, head.find(' ', 8) - 8);
      EXPECT_TRUE(head.starts_with("CONNECT 127.0.0.1:")) << head;
      net::Address target = or_throw(net::Address::parse(where));
      net::TcpStream server = or_throw(co_await net::TcpStream::connect(target));
      Result<void> told = co_await net::write_all(client, "HTTP/1.1 200 Open\r\n\r\n");
      or_throw(told);
      ++tunnels;
      co_await all_of(relay(client, server), relay(server, client));
    };
    net::ServeLimits limits;
    co_await net::serve(listener_, limits, open);
  }

  net::TcpListener listener_;
};

TEST(Https, ThroughATunnel) {
  Served served(Scheme::https);
  served([&](std::string at, Server&) -> Task<void> {
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      TunnelProxy proxy(nursery);
      {
        ClientOptions options = direct();
        options.proxies.https = proxy.at();
        Client client(options);
        for (int i = 0; i < 3; ++i) {
          std::string got = co_await fetch(client, at + "/");
          EXPECT_EQ(got, "200 Hello.\n");
        }
        std::string got = co_await fetch(client, at + "/large");
        EXPECT_EQ(got.size(), 4 + 40u * 26'000);
        EXPECT_EQ(proxy.tunnels, 1) << "one connection for all";
      }
      co_return cancel;
    };
    co_await with_nursery(body);
  });
}

// Static files cannot be sent by the kernel here.
TEST(Https, FilesGoThroughTheCipher) {
  TemporaryDirectory directory;
  directory.write("large", pattern(1'000'000));
  Served served(Scheme::https);
  StaticFiles files = or_throw(StaticFiles::open(directory.path()));
  served.routes.get("/files/{path...}", files);
  served([&](std::string at, Server&) -> Task<void> {
    Client client(direct());
    std::string got = co_await fetch(client, at + "/files/large");
    EXPECT_TRUE(got == "200 " + pattern(1'000'000));
  });
}

TEST(Https, CurlGetsPages) {
  Served served(Scheme::https);
  TemporaryDirectory files;
  std::string roots = files.write("roots", authority().pem());
  served([&](std::string at, Server&) -> Task<void> {
    for (const char* version : {"1.2", "1.3"}) {
      ProcessOptions program("curl", {"--silent", "--show-error", "--cacert", roots, "--tls-max",
                                      version, at + "/", at + "/", at + "/large"});
      Result<Finished> got = co_await run_process(std::move(program));
      Finished output = or_throw(std::move(got));
      EXPECT_TRUE(output.status.success()) << output.err;
      EXPECT_EQ(output.out.size(), 2 * 7 + 40u * 26'000);
    }
  });
}

}  // namespace
