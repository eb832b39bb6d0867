// SPDX-License-Identifier: MIT
// Limits that are for all workers together: each has its share, however the server was started.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/http/client.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/http/service.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::http;

constexpr std::size_t kWorkers = 2;
constexpr std::size_t kClients = 24;

// A port that was free a moment ago: serve_on() has to be told one.
net::Address somewhere() {
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  return or_throw(listener.local_address());
}

void note_most(std::atomic<std::size_t>& most, std::size_t count) {
  for (std::size_t seen = most; seen < count && !most.compare_exchange_weak(seen, count);) {
  }
}

using Visit = std::function<Task<void>(net::Address)>;

// Runs a server on two workers while `visit` runs.
using Serve = void (*)(Handler&, ServerOptions, Visit);

void by_serve_on(Handler& handler, ServerOptions options, Visit visit) {
  IOContext context({.workers = kWorkers});
  net::Address where = somewhere();
  auto body = [&]() -> Task<void> {
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> {
        Result<void> served = co_await serve_on(context, where, handler, options);
        or_throw(served);
      };
      nursery.start(serve);
      while (true) {  // until it listens
        Result<net::TcpStream> peer = co_await net::TcpStream::connect(where);
        if (peer) break;
        co_await yield();
      }
      co_await visit(where);
      co_return cancel;
    };
    co_await with_nursery(both);
  };
  context.run(body());
}

void by_listen(Handler& handler, ServerOptions options, Visit visit) {
  IOContext context({.workers = kWorkers});
  net::Server server({.workers = kWorkers});
  net::Address where = or_throw(listen(server, net::Address::loopback_v4(0), handler, options));
  auto visit_and_stop = [&]() -> Task<void> {
    co_await visit(where);
    server.stop();
  };
  auto both = [&]() -> Task<void> { co_await all_of(server.run(), visit_and_stop()); };
  context.run(both());
}

struct Way {
  const char* name;
  Serve serve;
};
struct HttpWorkers : ::testing::TestWithParam<Way> {};

// How many of kClients requests were answered with each of these.
struct Answers {
  std::size_t ok = 0, busy = 0, others = 0;
};

ClientOptions many_connections() {
  ClientOptions options;
  options.proxies = {};
  options.limits.connections_per_origin_max = kClients;
  options.limits.idle_connections_max = 0;
  return options;
}

// All at once. `on_answer` is called behind each.
Task<void> ask_all(net::Address where, Answers& answers, std::function<void()> on_answer) {
  Client client(many_connections());
  const std::string url = "http://" + where.to_string() + "/";
  auto ask = [&]() -> Task<void> {
    Result<ClientResponse> response = co_await client.get(url);
    int status = or_throw(std::move(response)).status();
    ++(status == 200 ? answers.ok : status == 503 ? answers.busy : answers.others);
    on_answer();
  };
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < kClients; ++i) nursery.start(ask());
    co_return join;
  };
  co_await with_nursery(all);
}

// Each handler waits until every request is either in a handler or refused: so many run then as may.
TEST_P(HttpWorkers, ShareTheRequestsInProgress) {
  for (std::size_t limit : {2u, 3u, 4u}) {
    std::atomic<std::size_t> running = 0, refused = 0;
    Event all_came;
    auto look = [&] {
      if (running + refused == kClients) all_came.set();
    };
    Router routes;
    auto hold = [&](const Request&, Response&) -> Task<void> {
      ++running;
      look();
      co_await all_came.wait();
    };
    routes.get("/", hold);
    Answers answers;
    Visit visit = [&](net::Address where) -> Task<void> {
      auto count = [&] {
        refused = answers.busy;
        look();
      };
      co_await ask_all(where, answers, count);
    };
    GetParam().serve(routes, {.limits = {.requests_in_progress_max = limit}}, visit);
    EXPECT_EQ(answers.others, 0u);
    EXPECT_EQ(answers.ok, running);
    EXPECT_LE(answers.ok, limit);
    EXPECT_GE(answers.ok, 1u);
    EXPECT_EQ(answers.ok + answers.busy, kClients);
  }
}

// One request on each connection: handlers that run are connections that are open.
TEST_P(HttpWorkers, ShareTheConnections) {
  for (std::size_t limit : {2u, 3u, 4u}) {
    std::atomic<std::size_t> open = 0, most = 0;
    Router routes;
    auto linger = [&, limit](const Request&, Response& response) -> Task<void> {
      note_most(most, ++open);
      // Long enough for one too many to come.
      for (int i = 0; i < 2000 && open <= limit; ++i) co_await yield();
      response.close_after();
      --open;
    };
    routes.get("/", linger);
    Answers answers;
    Visit visit = [&](net::Address where) -> Task<void> {
      co_await ask_all(where, answers, [] {});
    };
    GetParam().serve(routes, {.limits = {.connections_max = limit}}, visit);
    EXPECT_EQ(answers.ok, kClients) << "who comes too early waits";
    EXPECT_LE(most, limit);
    EXPECT_GE(most, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HttpWorkers,
                         ::testing::Values(Way{"serve_on", by_serve_on}, Way{"listen", by_listen}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HttpLimits, AShareIsRoundedDownButNotToNothing) {
  Limits all;
  all.connections_max = 7;
  all.requests_in_progress_max = 3;
  Limits share = share_of(all, 4);
  EXPECT_EQ(share.connections_max, 1u);
  EXPECT_EQ(share.requests_in_progress_max, 1u);
  share = share_of(all, 2);
  EXPECT_EQ(share.connections_max, 3u);
  EXPECT_EQ(share.requests_in_progress_max, 1u);
  EXPECT_EQ(share_of(all, 1).connections_max, 7u);
  EXPECT_EQ(share_of(Limits(), 2).requests_in_progress_max, Limits().requests_in_progress_max)
      << "no limit is none for each";
  all.requests_in_progress_max = 0;
  EXPECT_EQ(share_of(all, 2).requests_in_progress_max, 0u) << "nothing is nothing";
}

}  // namespace
