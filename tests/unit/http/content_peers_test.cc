// SPDX-License-Identifier: MIT
// Other people's programs on compressed answers and on events: curl, Python.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/http_fixture.h"
#include "weft/http/compression.h"
#include "weft/http/event_stream.h"
#include "weft/net/tcp.h"
#include "weft/run/process.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;

std::string text(std::size_t size) {
  std::string all;
  for (std::size_t i = 0; all.size() < size; ++i) all += "line " + std::to_string(i) + " of it\n";
  all.resize(size);
  return all;
}

struct HttpContentPeers : testing::Test {
  HttpContentPeers() : listener(or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)))) {
    url = "http://" + or_throw(listener.local_address()).to_string();
    routes.use(Compression());
    routes.get("/whole", [](const Request&, Response& response) -> Task<void> {
      response.body("text/plain", text(100'000));
      co_return;
    });
    routes.get("/pieces", [](const Request&, Response& response) -> Task<void> {
      response.header("content-type", "application/json");
      std::string all = text(300'000);
      for (std::size_t at = 0; at < all.size(); at += 1000) {
        Result<void> written = co_await response.write(all.substr(at, 1000));
        if (written && at % 7000 == 0) written = co_await response.flush();
        or_throw(written);
      }
    });
    routes.get(
        "/events",
        [this](const Request& request, Response& response, Connection& connection) -> Task<void> {
          auto body = [&](EventStream& events) -> Task<void> {
            int number = 0;
            if (auto last = events.last_event_id()) number = std::stoi(std::string(*last));
            while (true) {
              std::string id = std::to_string(++number), data = "first\nof " + id;
              EventMessage message{.event = "tick", .data = data, .id = id};
              Result<void> sent = co_await events.send(message);
              if (!sent) co_return;
              if (number == 3) three.set();
              co_await sleep_for(1ms);
            }
          };
          ends.push_back(co_await serve_events(request, response, connection, body));
          ended.set();
        });
  }

  void with_server(std::function<Task<void>()> client) {
    EventLoop loop;
    Server server(routes);
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
      nursery.start(serve);
      co_await client();
      co_return cancel;
    };
    auto body = [&]() -> Task<void> { co_await with_nursery(both); };
    run(loop, body());
    EXPECT_EQ(server.connections(), 0u);
    EXPECT_EQ(loop.strand_count(), 0u);
  }
  static Task<std::string> output_of(std::string program, std::vector<std::string> arguments) {
    ProcessOptions options(program, std::move(arguments));
    Result<Finished> done = co_await run_process(std::move(options));
    Finished finished = or_throw(std::move(done));
    EXPECT_EQ(finished.err, "");
    co_return finished.out;
  }

  net::TcpListener listener;
  std::string url;
  Router routes;
  std::vector<EventStreamEnd> ends;
  Event three, ended;
};

TEST_F(HttpContentPeers, CurlDecodesWhatItGets) {
  with_server([&]() -> Task<void> {
    for (const char* path : {"/whole", "/pieces"}) {
      std::string plain = text(path == std::string("/whole") ? 100'000 : 300'000);
      for (const char* coding : {"gzip", "br", "br;q=0.5, gzip;q=0.1", "identity"}) {
        if (!has_brotli() && std::string(coding) == "br") continue;
        std::string field = "Accept-Encoding: " + std::string(coding);
        std::vector<std::string> arguments{"-sS", "--max-time", "20",      "--compressed",
                                           "-H",  field,        url + path};
        std::string body = co_await output_of("curl", std::move(arguments));
        EXPECT_TRUE(body == plain) << path << " by " << coding;
      }
      // As few bytes as it says.
      std::vector<std::string> measure{"-sS",     "--max-time", "20", "--compressed",
                                       "-o",      "/dev/null",  "-w", "%{size_download}",
                                       url + path};
      std::string bytes = co_await output_of("curl", std::move(measure));
      EXPECT_LT(std::stoul(bytes), plain.size() / 4);
    }
  });
}

// Reads events with the standard library only, closes in the middle, and comes again with the last id.
constexpr const char* kReader = R"(
import http.client, sys
host = sys.argv[1]
last = None
for turn in range(2):
    connection = http.client.HTTPConnection(host, timeout=20)
    fields = {"Accept": "text/event-stream"}
    if last: fields["Last-Event-ID"] = last
    connection.request("GET", "/events", headers=fields)
    response = connection.getresponse()
    assert response.getheader("Content-Type") == "text/event-stream"
    data, seen = [], 0
    while seen < 3:
        line = response.readline().decode().rstrip("\n")
        if line.startswith("data: "): data.append(line[6:])
        elif line.startswith("id: "): last = line[4:]
        elif line == "" and data:
            print(last, "|".join(data))
            data, seen = [], seen + 1
    response.close()
    connection.close()
)";

TEST_F(HttpContentPeers, PythonReadsEventsAndLeaves) {
  with_server([&]() -> Task<void> {
    std::vector<std::string> arguments{"-c", kReader, url.substr(7)};
    std::string seen = co_await output_of("python3", std::move(arguments));
    EXPECT_EQ(
        seen,
        "1 first|of 1\n2 first|of 2\n3 first|of 3\n4 first|of 4\n5 first|of 5\n6 first|of 6\n");
    while (ends.size() < 2) {
      co_await ended.wait();
      ended.reset();
    }
    EXPECT_EQ(ends, (std::vector{EventStreamEnd::peer_left, EventStreamEnd::peer_left}));
  });
}

// The stop of the server ends the stream properly: curl is content, and the drain does not last.
TEST_F(HttpContentPeers, AStopEndsTheEventsOfCurl) {
  std::string seen;
  auto before = std::chrono::steady_clock::now();
  auto root = [&]() -> Task<void> {
    Server server(routes);
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto read = [&]() -> Task<void> {
        std::vector<std::string> arguments{"-sS",        "-N", "--compressed",
                                           "--max-time", "20", url + "/events"};
        seen = co_await output_of("curl", std::move(arguments));
      };
      nursery.start(read);
      auto stopped = [&](Nursery& serving) -> Task<NurseryEnd> {
        auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
        serving.start(serve);
        co_await three.wait();
        before = std::chrono::steady_clock::now();
        co_return cancel;
      };
      co_await with_nursery(stopped);
      co_return join;
    };
    co_await with_nursery(both);
  };
  EventLoop loop;
  run(loop, root());
  EXPECT_LT(std::chrono::steady_clock::now() - before, Limits().drain_timeout);
  EXPECT_TRUE(
      seen.starts_with("event: tick\nid: 1\ndata: first\ndata: of 1\n\nevent: tick\nid: 2\n"))
      << seen.substr(0, 200);
  EXPECT_TRUE(seen.ends_with("\n\n"));
  EXPECT_EQ(ends, std::vector{EventStreamEnd::stopping});
}

}  // namespace
