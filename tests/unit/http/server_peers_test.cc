// SPDX-License-Identifier: MIT
// Our server, asked by programs of others: nginx, which hands on to it what it is asked, and wrk, which asks as fast as it can.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/http_peers.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;

Task<Finished> run_program(std::string name, std::vector<std::string> arguments) {
  ProcessOptions program(std::move(name), std::move(arguments));
  Result<Finished> done = co_await run_process(std::move(program));
  co_return or_throw(std::move(done));
}

// nginx's own connections to us are kept, with the version of HTTP and without the field that its defaults would have. Over TLS it
// speaks no ALPN, and verifies us.
std::string hand_on_to(const std::string& ours, const std::string& roots) {
  return "    location /ours/ { proxy_pass " + ours +
         "/; proxy_http_version 1.1; proxy_set_header Connection \"\"; client_max_body_size 10m; "
         "proxy_ssl_verify on; proxy_ssl_trusted_certificate " +
         roots + "; proxy_ssl_name localhost; proxy_ssl_server_name on; }\n";
}

class HttpServerPeers : public ::testing::TestWithParam<Scheme> {};
INSTANTIATE_TEST_SUITE_P(Both, HttpServerPeers, ::testing::Values(Scheme::http, Scheme::https),
                         [](const auto& scheme) { return std::string(to_string(scheme.param)); });

TEST_P(HttpServerPeers, NginxAsksUs) {
  TemporaryDirectory files;
  std::string roots = files.write("roots", authority().pem());
  Served served(GetParam());
  served([&](std::string at, Server& server) -> Task<void> {
    Nginx nginx(Scheme::http, hand_on_to(at, roots));
    Process process = co_await started(nginx);
    {
      Client client(direct());
      for (int i = 0; i < 12; ++i) {
        std::string got = co_await fetch(client, nginx.at("/ours/"));
        EXPECT_EQ(got, "200 Hello.\n");
      }
      // Chunked from us; and a body that nginx sends with its length, and one in chunks that it has put together.
      std::string got = co_await fetch(client, nginx.at("/ours/large"));
      EXPECT_EQ(got.size(), 4 + 40u * 26'000);
      for (std::size_t size : {0, 10, 100'000, 2'000'000}) {
        std::string text = pattern(size);
        ClientRequest request(Method::post, or_throw(Url::parse(nginx.at("/ours/echo"))), {}, text);
        ClientResponse response = or_throw(co_await client.request(std::move(request)));
        EXPECT_EQ(response.status(), 200);
        std::string back = or_throw(co_await response.body().read_all());
        EXPECT_TRUE(back == text) << size;
      }
      // HEAD and a page that is not there pass as they are.
      ClientRequest head(Method::head, or_throw(Url::parse(nginx.at("/ours/"))));
      ClientResponse response = or_throw(co_await client.request(std::move(head)));
      EXPECT_EQ(response.headers().find("content-length"), "7");
      got = co_await fetch(client, nginx.at("/ours/none"));
      EXPECT_TRUE(got.starts_with("404 ")) << got;
      // Who leaves nginx leaves us: it closes its connection, and our handler may know.
      auto first = co_await any_of(fetch(client, nginx.at("/ours/stuck")), served.is_stuck.wait());
      EXPECT_EQ(first.index(), 1u);
      EXPECT_GT(server.connections(), 0u);
    }
    Result<ExitStatus> ended = co_await process.terminate();
    EXPECT_TRUE(ended.has_value());
  });
}

TEST(HttpServerPeersWrk, IsAnsweredWithoutAnError) {
  for (Scheme scheme : {Scheme::http, Scheme::https}) {
    Served served(scheme);
    std::size_t answered = 0;
    served.options.access_log = [&](const AccessRecord& record) {
      EXPECT_EQ(record.status, 200);
      ++answered;
    };
    served([&](std::string at, Server&) -> Task<void> {
      std::vector<std::string> arguments{"-t1", "-c20", "-d1s", at + "/"};
      Finished wrk = co_await run_program("wrk", arguments);
      EXPECT_TRUE(wrk.status.success()) << wrk.err;
      EXPECT_NE(wrk.out.find("requests in"), std::string::npos) << wrk.out;
      EXPECT_EQ(wrk.out.find("Socket errors"), std::string::npos) << wrk.out;
      EXPECT_EQ(wrk.out.find("Non-2xx"), std::string::npos) << wrk.out;
    });
    EXPECT_GT(answered, 100u);
  }
}

}  // namespace
