// SPDX-License-Identifier: MIT
// The Client against servers over TCP: our own, nginx, and Python's.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/http_fixture.h"
#include "weft/http/client.h"
#include "weft/net/error.h"
#include "weft/net/tcp.h"
#include "weft/run/process.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;

ClientOptions direct() { return ClientOptions{.proxies = {}}; }

std::size_t descriptors() {
  auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

Task<std::string> fetch(Client& client, std::string where) {
  Result<ClientResponse> response = co_await client.get(where);
  if (!response) co_return "error: " + response.error().message();
  Result<std::string> body = co_await response->body().read_all();
  if (!body) co_return "error: " + body.error().message();
  co_return std::to_string(response->status()) + " " + *body;
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

// --- Our own server ---------------------------------------------------------------------------------

class Served {
 public:
  Served() {
    routes.get("/", [](const Request&, Response& response) -> Task<void> {
      response.body("text/plain", "Hello.\n");
      co_return;
    });
    routes.post("/echo", [](const Request& request, Response& response) -> Task<void> {
      request.body().allow(10'000'000);
      Result<std::string> body = co_await request.body().read_all();
      response.body("text/plain", or_throw(std::move(body)));
    });
    routes.get("/large", [](const Request&, Response& response) -> Task<void> {
      std::string piece = pattern(26'000);
      for (int i = 0; i < 40; ++i) {
        Result<void> written = co_await response.write(piece);
        or_throw(written);
      }
    });
    routes.get("/stuck", [this](const Request&, Response& response) -> Task<void> {
      ++stuck;
      Result<void> written = co_await response.write("some");
      if (written) written = co_await response.flush();
      or_throw(written);
      co_await suspend_forever();
    });
  }

  // Runs body(url), a coroutine, while the server serves, on one loop.
  template <class Body>
  void operator()(Body body) {
    std::size_t before = 0;
    EventLoop loop;
    auto root = [&]() -> Task<void> {
      co_await yield();
      before = descriptors();
      {
        net::TcpListener listener =
            or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
        std::string at = "http://" + or_throw(listener.local_address()).to_string();
        Limits limits{.drain_timeout = 10ms};
        Server server(routes, {.limits = limits});
        auto serving = [&](Nursery& nursery) -> Task<NurseryEnd> {
          auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
          nursery.start(serve);
          co_await body(at, server);
          co_return cancel;
        };
        co_await with_nursery(serving);
      }
    };
    auto in_time = [&]() -> Task<bool> {
      auto ended = co_await timeout(60s, root());
      co_return ended.has_value();
    };
    EXPECT_TRUE(run(loop, in_time())) << "it hangs";
    EXPECT_EQ(loop.strand_count(), 0u);
    EXPECT_EQ(loop.statistics().operations, 0u);
    EXPECT_EQ(descriptors(), before) << "a descriptor was left";
  }

  Router routes;
  int stuck = 0;
};

TEST(HttpClientOverTcp, TalksToOurServer) {
  Served served;
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

TEST(HttpClientOverTcp, ManyAtOnceShareAFewConnections) {
  Served served;
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
TEST(HttpClientOverTcp, DoesNotUseAConnectionThatTheServerHasClosed) {
  Served served;
  served([&](std::string, Server&) -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    std::string at = "http://" + or_throw(listener.local_address()).to_string() + "/";
    std::vector<net::TcpStream> peers;
    // Says goodbye after its answer, and not in it.
    auto answer = [&]() -> Task<void> {
      Result<net::TcpStream> accepted = co_await listener.accept();
      net::TcpStream& peer = peers.emplace_back(or_throw(std::move(accepted)));
      std::string seen;
      std::array<std::byte, 1000> buffer;
      while (!seen.ends_with("an order")) {
        Result<std::size_t> count = co_await peer.read_some(buffer);
        seen.append(reinterpret_cast<const char*>(buffer.data()), or_throw(count));
      }
      Result<void> sent = co_await net::write_all(peer, "HTTP/1.1 204 No Content\r\n\r\n");
      if (sent) sent = co_await peer.shutdown_write();
      or_throw(sent);
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

TEST(HttpClientOverTcp, CancelledItClosesAndTheServerNotices) {
  Served served;
  served([&](std::string at, Server& server) -> Task<void> {
    Client client(direct());
    auto late = co_await timeout(20ms, fetch(client, at + "/stuck"));
    EXPECT_FALSE(late.has_value());
    EXPECT_EQ(served.stuck, 1);
    EXPECT_EQ(client.connections(), 0u);
    // The others are served all the same.
    std::string got = co_await fetch(client, at + "/");
    EXPECT_EQ(got, "200 Hello.\n");
    EXPECT_EQ(server.connections(), 2u) << "its handler waits for something else";
  });
}

TEST(HttpClientOverTcp, ErrorsOfTheWorldAreErrors) {
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

// --- Programs of others -----------------------------------------------------------------------------

// A directory of its own, with files in it.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-client-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { std::filesystem::remove_all(path_); }

  void write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::uint16_t free_port() {
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  return or_throw(listener.local_address()).port();
}

// Runs body(process), a coroutine, once the server at `port` takes connections.
template <class Body>
void with_program(ProcessOptions program, std::uint16_t port, Body body) {
  EventLoop loop;
  auto root = [&]() -> Task<void> {
    Process process = or_throw(Process::spawn(std::move(program)));
    while (!process.try_wait()) {
      Result<net::TcpStream> there =
          co_await net::TcpStream::connect(net::Address::loopback_v4(port));
      if (there) break;
      co_await sleep_for(5ms);
    }
    bool runs = !process.try_wait();
    EXPECT_TRUE(runs) << "it has ended by itself";
    if (runs) co_await body(process);
    Result<ExitStatus> ended = co_await process.terminate();
    EXPECT_TRUE(ended.has_value());
  };
  auto in_time = [&]() -> Task<bool> {
    auto ended = co_await timeout(60s, root());
    co_return ended.has_value();
  };
  EXPECT_TRUE(run(loop, in_time())) << "it hangs";
}

struct Nginx {
  Nginx() : port(free_port()) {
    directory.write("html/index.html", "from nginx\n");
    directory.write("html/large", pattern(1'000'000));
    directory.write("nginx.conf",
                    "daemon off;\nmaster_process off;\npid " + directory.path() +
                        "/pid;\nerror_log " + directory.path() +
                        "/error.log;\nevents {}\nhttp {\n  access_log off;\n"
                        "  client_body_temp_path " +
                        directory.path() + "/body;\n  proxy_temp_path " + directory.path() +
                        "/proxy;\n  fastcgi_temp_path " + directory.path() +
                        "/fastcgi;\n  uwsgi_temp_path " + directory.path() +
                        "/uwsgi;\n  scgi_temp_path " + directory.path() +
                        "/scgi;\n  keepalive_requests 5;\n  server {\n    listen 127.0.0.1:" +
                        std::to_string(port) + ";\n    root " + directory.path() +
                        "/html;\n    location /moved { return 301 /index.html; }\n"
                        "    location /none { return 204; }\n"
                        "    location /closes { keepalive_timeout 0; return 200 bye; }\n"
                        "    location /gone { return 444; }\n"
                        "    location /slow { limit_rate 20000; alias " +
                        directory.path() + "/html/large; }\n  }\n}\n");
  }
  [[nodiscard]] ProcessOptions program() const {
    ProcessOptions options("/usr/sbin/nginx", {"-c", directory.path() + "/nginx.conf", "-p",
                                               directory.path(), "-e", directory.path() + "/e"});
    options.err = Redirect::null();
    return options;
  }
  [[nodiscard]] std::string at(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port) + path;
  }

  Directory directory;
  std::uint16_t port;
};

TEST(HttpClientPeers, TalksToNginx) {
  if (!std::filesystem::exists("/usr/sbin/nginx")) FAIL() << "nginx is not installed (nginx-light)";
  Nginx nginx;
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
    EXPECT_EQ(got, "error: " + make_error_code(net::Error::unexpected_end).message())
        << "it closes without a word";
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

TEST(HttpClientPeers, AServerThatIsKilledMidwayIsAnError) {
  if (!std::filesystem::exists("/usr/sbin/nginx")) FAIL() << "nginx is not installed (nginx-light)";
  Nginx nginx;
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

TEST(HttpClientPeers, TalksToPython) {
  Directory directory;
  directory.write("index.html", "from Python\n");
  directory.write("large", pattern(500'000));
  std::uint16_t port = free_port();
  for (const char* version : {"HTTP/1.0", "HTTP/1.1"}) {
    ProcessOptions program("python3", {"-m", "http.server", "--bind", "127.0.0.1", "-d",
                                       directory.path(), "-p", version, std::to_string(port)});
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
