// SPDX-License-Identifier: MIT
// Server-sent events: a clock that ticks for ever, and a reader that comes again after the server has stopped.
//
// Run: build/release/examples/29_http_events
// See: ticks with their ids; the server stops at once although the stream has no end; the next one goes on behind the last id.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "weft/http/client.h"
#include "weft/http/event_reader.h"
#include "weft/http/event_stream.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/tcp.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [events]
Task<void> tick(const http::Request& request, http::Response& response,
                http::Connection& connection) {
  auto ticking = [&](http::EventStream& events) -> Task<void> {
    int number = 0;
    if (auto last = events.last_event_id()) number = std::stoi(std::string(*last));
    while (true) {
      std::string id = std::to_string(++number), data = "tick " + id;
      http::EventMessage message{.event = "tick", .data = data, .id = id};
      Result<void> sent = co_await events.send(message);  // waits while the peer does not read
      if (!sent) co_return;
      co_await sleep_for(5ms);
    }
  };
  co_await http::serve_events(request, response, connection, ticking);
}
// [/events]

// Reads three events. Returns: the last one's id.
Task<std::string> read_three(const http::Url& url, std::string last_id) {
  http::Client client(http::ClientOptions{.proxies = {}});
  http::HeaderLines fields;
  if (!last_id.empty()) fields.add("last-event-id", last_id);
  http::ClientRequest request(http::Method::get, url, fields);
  http::ClientResponse response = or_throw(co_await client.request(std::move(request)));
  http::EventReader events(response.body());
  for (int i = 0; i < 3; ++i) {
    auto event = or_throw(co_await events.next());
    if (!event) break;
    std::printf("%s: %s\n", event->event.c_str(), event->data.c_str());
  }
  co_return events.last_event_id();
}

// A server for one reader, which stops while the stream still runs: another one has it open.
Task<std::string> serve_once(std::string last_id) {
  http::Router routes;
  routes.get("/ticks", tick);
  http::Server server(routes);
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::Address where = or_throw(listener.local_address());
  http::Url url = or_throw(http::Url::parse("http://" + where.to_string() + "/ticks"));

  auto read = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
    nursery.start(serve);
    http::Client other(http::ClientOptions{.proxies = {}});
    http::ClientResponse endless = or_throw(co_await other.get(url));
    last_id = co_await read_three(url, last_id);
    co_return cancel;  // the server; it ends the other stream, and does not wait for its deadline
  };
  TimePoint before = now();
  co_await with_nursery(read);
  bool in_time = now() - before < server.options().limits.drain_timeout;
  std::printf("the server has stopped, %s\n", in_time ? "at once" : "late");
  co_return last_id;
}

Task<void> serve_twice() {
  std::string last_id = co_await serve_once("");
  co_await serve_once(last_id);
}

int main() {
  EventLoop loop;
  run(loop, serve_twice());
}
