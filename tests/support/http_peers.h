// SPDX-License-Identifier: MIT
#pragma once
// Servers over TCP for a Client to talk to: one of ours, and programs of others.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/fetch.h"
#include "support/temporary_directory.h"
#include "support/tls_engines.h"
#include "weft/http/client.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/tcp.h"
#include "weft/run/process.h"
#include "weft/weft.h"

namespace weft::test {

// No proxies; trusts authority() and nobody else.
inline http::ClientOptions direct() {
  tls::ClientOptions trusts = client_options();
  trusts.alpn = {"http/1.1"};
  http::ConnectorOptions options{.tls = client_context(trusts)};
  return http::ClientOptions{.proxies = {},
                             .connector = std::make_shared<http::TcpConnector>(options)};
}

inline std::size_t descriptors() {
  auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

// --- Our own server ---------------------------------------------------------------------------------

class Served {
 public:
  explicit Served(http::Scheme scheme = http::Scheme::http) : scheme_(scheme) {
    options.limits.drain_timeout = std::chrono::milliseconds(10);
    if (scheme == http::Scheme::https) options.tls = server_context();
    routes.get("/", [](const http::Request&, http::Response& response) -> Task<void> {
      response.body("text/plain", "Hello.\n");
      co_return;
    });
    routes.post("/echo", [](const http::Request& request, http::Response& response) -> Task<void> {
      request.body().allow(10'000'000);
      Result<std::string> body = co_await request.body().read_all();
      response.body("text/plain", or_throw(std::move(body)));
    });
    routes.get("/large", [](const http::Request&, http::Response& response) -> Task<void> {
      std::string piece = pattern(26'000);
      for (int i = 0; i < 40; ++i) {
        Result<void> written = co_await response.write(piece);
        or_throw(written);
      }
    });
    routes.get("/stuck", [this](const http::Request&, http::Response& response) -> Task<void> {
      Result<void> written = co_await response.write("some");
      if (written) written = co_await response.flush();
      or_throw(written);
      is_stuck.set();
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
        std::string at = std::string(http::to_string(scheme_)) + "://" +
                         or_throw(listener.local_address()).to_string();
        http::Server server(routes, options);
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
      auto ended = co_await timeout(std::chrono::seconds(60), root());
      co_return ended.has_value();
    };
    EXPECT_TRUE(run(loop, in_time())) << "it hangs";
    EXPECT_EQ(loop.strand_count(), 0u);
    EXPECT_EQ(loop.statistics().operations, 0u);
    EXPECT_EQ(descriptors(), before) << "a descriptor was left";
  }

  http::Router routes;
  http::ServerOptions options;
  Event is_stuck;  // somebody asked for /stuck, and has the beginning

 private:
  http::Scheme scheme_;
};

inline std::uint16_t free_port() {
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
      co_await sleep_for(std::chrono::milliseconds(5));
    }
    bool runs = !process.try_wait();
    EXPECT_TRUE(runs) << "it has ended by itself";
    if (runs) co_await body(process);
    Result<ExitStatus> ended = co_await process.terminate();
    EXPECT_TRUE(ended.has_value());
  };
  auto in_time = [&]() -> Task<bool> {
    auto ended = co_await timeout(std::chrono::seconds(60), root());
    co_return ended.has_value();
  };
  EXPECT_TRUE(run(loop, in_time())) << "it hangs";
}

// nginx in the foreground, with one server block at `port`.
struct Nginx {
  explicit Nginx(http::Scheme speaks = http::Scheme::http, const std::string& locations = "")
      : scheme(speaks), port(free_port()) {
    std::string home = directory.path().string();
    directory.write("html/index.html", "from nginx\n");
    directory.write("html/large", pattern(1'000'000));
    std::string config =
        "daemon off;\nmaster_process off;\npid HOME/pid;\nerror_log HOME/error.log;\nevents {}\n"
        "http {\n  access_log off;\n  client_body_temp_path HOME/body;\n"
        "  proxy_temp_path HOME/proxy;\n  fastcgi_temp_path HOME/fastcgi;\n"
        "  uwsgi_temp_path HOME/uwsgi;\n  scgi_temp_path HOME/scgi;\n  keepalive_requests 5;\n"
        "  server {\n    listen 127.0.0.1:PORT;\n    root HOME/html;\n"
        "    location /moved { return 301 /index.html; }\n"
        "    location /none { return 204; }\n"
        "    location /closes { keepalive_timeout 0; return 200 bye; }\n"
        "    location /gone { return 444; }\n"
        "    location /slow { limit_rate 20000; alias HOME/html/large; }\n" +
        locations + "  }\n}\n";
    replace_all(config, "PORT", std::to_string(port) + (is_secure() ? " ssl" : ""));
    if (is_secure()) {
      directory.write("certificate", server_identity().certificate_pem);
      directory.write("key", server_identity().key_pem);
      replace_all(config, "    root ",
                  "    ssl_certificate HOME/certificate;\n    ssl_certificate_key HOME/key;\n"
                  "    root ");
    }
    replace_all(config, "HOME", home);
    directory.write("nginx.conf", config);
  }

  [[nodiscard]] ProcessOptions program() const {
    std::string home = directory.path().string();
    ProcessOptions options("/usr/sbin/nginx",
                           {"-c", home + "/nginx.conf", "-p", home, "-e", home + "/e"});
    options.err = Redirect::null();
    return options;
  }
  [[nodiscard]] std::string at(const std::string& path) const {
    return std::string(http::to_string(scheme)) + "://127.0.0.1:" + std::to_string(port) + path;
  }

  TemporaryDirectory directory;
  http::Scheme scheme;
  std::uint16_t port;

 private:
  [[nodiscard]] bool is_secure() const { return scheme == http::Scheme::https; }
  static void replace_all(std::string& text, std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
      text.replace(at, what.size(), by);
    }
  }
};

// On this loop, once it takes connections. Ended by terminate().
inline Task<Process> started(const Nginx& nginx) {
  Process process = or_throw(Process::spawn(nginx.program()));
  while (true) {
    Result<net::TcpStream> there =
        co_await net::TcpStream::connect(net::Address::loopback_v4(nginx.port));
    if (there) break;
    if (process.try_wait()) throw std::runtime_error("nginx (nginx-light) has ended by itself");
    co_await sleep_for(std::chrono::milliseconds(5));
  }
  co_return process;
}

}  // namespace weft::test
