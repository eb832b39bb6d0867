// SPDX-License-Identifier: MIT
#include "weft/http/event_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/http_client_fixture.h"
#include "support/http_fixture.h"
#include "weft/http/compression.h"
#include "weft/http/error.h"
#include "weft/http/event_reader.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;
using test::Answer;
using test::parse_answers;
using test::Talk;

// --- What an event looks like -----------------------------------------------------------------------

TEST(HttpEventMessage, HasALinePerField) {
  EXPECT_EQ(to_string(EventMessage{.data = "hello"}), "data: hello\n\n");
  EXPECT_EQ(to_string(EventMessage{.event = "price", .data = "1", .id = "7", .retry = 3s}),
            "event: price\nid: 7\nretry: 3000\ndata: 1\n\n");
  EXPECT_EQ(to_string(EventMessage{.data = ""}), "data: \n\n");
  EXPECT_EQ(to_string(EventMessage{.id = ""}), "id: \n\n");
  EXPECT_EQ(to_string(EventMessage{.retry = 0ms}), "retry: 0\n\n");
  EXPECT_EQ(to_string(EventMessage{}), "\n");
}

TEST(HttpEventMessage, DataMayHaveLines) {
  struct Case {
    const char *data, *text;
  };
  for (Case one :
       {Case{"a\nb", "data: a\ndata: b\n\n"}, Case{"a\rb", "data: a\ndata: b\n\n"},
        Case{"a\r\nb", "data: a\ndata: b\n\n"}, Case{"a\n\nb", "data: a\ndata: \ndata: b\n\n"},
        Case{"a\n\rb", "data: a\ndata: \ndata: b\n\n"}, Case{"a\n", "data: a\ndata: \n\n"},
        Case{"\r\n", "data: \ndata: \n\n"}, Case{"a\r\r\nb", "data: a\ndata: \ndata: b\n\n"},
        Case{" a: b", "data:  a: b\n\n"},
        // Nobody can make another event of it.
        Case{"a\n\nevent: b\ndata: c\n\n",
             "data: a\ndata: \ndata: event: b\ndata: data: c\ndata: \ndata: \n\n"}}) {
    EXPECT_EQ(to_string(EventMessage{.data = one.data}), one.text);
  }
}

TEST(HttpEventMessage, RefusesWhatWouldBeReadAsSomethingElse) {
  using namespace std::string_view_literals;
  for (std::string_view bad : {"a\nb"sv, "a\rb"sv, "\n"sv, "a\0b"sv}) {
    EXPECT_THROW((void)to_string(EventMessage{.event = bad, .data = "x"}), UsageError);
    EXPECT_THROW((void)to_string(EventMessage{.data = "x", .id = bad}), UsageError);
  }
  EXPECT_THROW((void)to_string(EventMessage{.retry = -1ms}), UsageError);
}

// --- The answer -------------------------------------------------------------------------------------

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// A server on one end of a MemoryStream, on a virtual clock; the test is at the other.
struct HttpEventStream : ::testing::Test {
  template <class Handler, class Client>
  void talk(Handler handler, Client client, ServerOptions options = {},
            net::MemoryStreamOptions wire = {}) {
    routes.get("/", handler);
    server.emplace(routes, options);
    auto both = [&]() -> Task<void> {
      auto [mine, theirs] = net::memory_streams(wire);
      stream = std::move(mine);
      StreamTransport transport(std::move(theirs));
      auto serve = [&]() -> Task<void> { co_await server->serve_connection(transport); };
      auto ask = [&]() -> Task<void> {
        co_await client();
        stream.close();
      };
      co_await all_of(serve(), ask());
    };
    run(loop, both());
    EXPECT_EQ(loop.strand_count(), 0u);
    EXPECT_EQ(server->connections(), 0u);
  }
  Task<void> send(std::string bytes) {
    Result<void> sent = co_await net::write_all(stream, bytes);
    or_throw(sent);
  }
  // Whatever there is; "" at the end.
  Task<std::string> read_some() {
    std::array<std::byte, 4096> buffer;
    Result<std::size_t> count = co_await stream.read_some(buffer);
    co_return std::string(reinterpret_cast<const char*>(buffer.data()), or_throw(count));
  }
  // Until that has come, or the end.
  Task<std::string> read_until(std::string_view last) {
    std::string all;
    while (all.find(last) == all.npos) {
      std::string more = co_await read_some();
      if (more.empty()) break;
      all += more;
    }
    co_return all;
  }
  Task<void> read_head() {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      std::array<std::byte, 1> byte;
      Result<std::size_t> count = co_await stream.read_some(byte);
      if (or_throw(count) == 0) break;
      head += static_cast<char>(byte[0]);
    }
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200")) << head;
  }
  // A handler that serves `body`, and notes how it ended.
  auto serving(std::function<Task<void>(EventStream&)> body, EventStreamOptions options = {}) {
    return [this, body, options](const Request& request, Response& response,
                                 Connection& connection) -> Task<void> {
      end = co_await serve_events(request, response, connection, body, options);
    };
  }

  weft::testing::VirtualLoop loop;
  Router routes;
  std::optional<Server> server;
  net::MemoryStream stream;
  std::optional<EventStreamEnd> end;
};

TEST_F(HttpEventStream, SendsEvents) {
  auto body = [](EventStream& events) -> Task<void> {
    EXPECT_FALSE(events.last_event_id().has_value());
    Result<void> sent = co_await events.send("hello");
    or_throw(sent);
    EventMessage message{.event = "price", .data = "1\n2", .id = "7"};
    sent = co_await events.send(message);
    or_throw(sent);
  };
  std::string answer;
  talk(serving(body), [&]() -> Task<void> {
    co_await send(kGet);
    answer = co_await read_until("0\r\n\r\n");
  });
  std::vector<Answer> answers = parse_answers(answer);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].field("content-type"), "text/event-stream");
  EXPECT_EQ(answers[0].field("cache-control"), "no-store");
  EXPECT_TRUE(answers[0].is_chunked);
  EXPECT_EQ(answers[0].body, "data: hello\n\nevent: price\nid: 7\ndata: 1\ndata: 2\n\n");
}

TEST_F(HttpEventStream, TheHeadLeavesBeforeTheFirstEvent) {
  Event go;
  auto body = [&](EventStream& events) -> Task<void> {
    co_await go.wait();
    Result<void> sent = co_await events.send("late");
    or_throw(sent);
  };
  talk(serving(body), [&]() -> Task<void> {
    co_await send(kGet);
    co_await read_head();
    go.set();
    std::string event = co_await read_some();
    EXPECT_EQ(event, "c\r\ndata: late\n\n\r\n");
  });
  EXPECT_EQ(end, EventStreamEnd::finished);
}

TEST_F(HttpEventStream, KnowsTheLastEventId) {
  std::string id;
  auto body = [&](EventStream& events) -> Task<void> {
    id = events.last_event_id().value_or("none");
    co_return;
  };
  talk(serving(body), [&]() -> Task<void> {
    co_await send("GET / HTTP/1.1\r\nHost: a\r\nLast-Event-ID: 41\r\n\r\n");
    co_await read_head();
  });
  EXPECT_EQ(id, "41");
}

TEST_F(HttpEventStream, HeadHasNoEvents) {
  bool was_called = false;
  auto body = [&](EventStream&) -> Task<void> {
    was_called = true;
    co_await suspend_forever();
  };
  talk(serving(body), [&]() -> Task<void> {
    co_await send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await read_head();
  });
  EXPECT_FALSE(was_called);
  EXPECT_EQ(end, EventStreamEnd::finished);
}

// --- Silence ----------------------------------------------------------------------------------------

TEST_F(HttpEventStream, ACommentLeavesWhileNobodySends) {
  auto body = [&](EventStream& events) -> Task<void> {
    co_await sleep_for(50s);
    for (int i = 0; i < 4; ++i) {
      Result<void> sent = co_await events.send("busy");
      or_throw(sent);
      co_await sleep_for(10s);  // less than the 15
    }
  };
  std::vector<std::string> seen;
  talk(serving(body), [&]() -> Task<void> {
    co_await send(kGet);
    co_await read_head();
    while (true) {
      std::string piece = co_await read_some();
      if (piece.empty() || piece == "0\r\n\r\n") break;
      seen.push_back(std::to_string(loop.elapsed() / 1s) + " " + piece);
    }
  });
  const std::string comment = " 3\r\n:\n\n\r\n", busy = " c\r\ndata: busy\n\n\r\n";
  EXPECT_EQ(seen, (std::vector<std::string>{"15" + comment, "30" + comment, "45" + comment,
                                            "50" + busy, "60" + busy, "70" + busy, "80" + busy}));
}

TEST_F(HttpEventStream, ItCanBeSilent) {
  auto body = [&](EventStream&) -> Task<void> { co_await sleep_for(1h); };
  std::string rest;
  talk(serving(body, {.keep_alive = 0ms}), [&]() -> Task<void> {
    co_await send(kGet);
    co_await read_head();
    rest = co_await read_some();
  });
  EXPECT_EQ(rest, "0\r\n\r\n");
  EXPECT_EQ(loop.elapsed(), 1h);
}

// --- The peer leaves --------------------------------------------------------------------------------

TEST_F(HttpEventStream, APeerThatClosesIsSeenAtOnce) {
  auto body = [](EventStream&) -> Task<void> { co_await suspend_forever(); };
  talk(serving(body, {.keep_alive = 1h}), [&]() -> Task<void> {
    co_await send(kGet);
    co_await read_head();
    co_await sleep_for(1s);
  });
  EXPECT_EQ(end, EventStreamEnd::peer_left);
  EXPECT_EQ(loop.elapsed(), 1s);
}

// It has sent another request before: its end is behind that, and only a write can tell.
TEST_F(HttpEventStream, APeerWithAnotherRequestIsSeenByAWrite) {
  auto body = [](EventStream&) -> Task<void> { co_await suspend_forever(); };
  talk(serving(body, {.keep_alive = 20s}), [&]() -> Task<void> {
    co_await send(kGet + kGet);
    co_await read_head();
    co_await sleep_for(1s);
  });
  EXPECT_EQ(end, EventStreamEnd::peer_left);
  EXPECT_EQ(loop.elapsed(), 20s);
}

// A request that comes while the events are sent is answered after them.
TEST_F(HttpEventStream, ARequestThatComesMeanwhileIsNotLost) {
  Event go;
  int calls = 0;
  auto body = [&](EventStream& events) -> Task<void> {
    ++calls;
    co_await go.wait();
    Result<void> sent = co_await events.send(std::to_string(calls));
    or_throw(sent);
  };
  std::string all;
  talk(serving(body), [&]() -> Task<void> {
    co_await send(kGet);
    co_await read_head();
    co_await send(kGet.substr(0, 10));
    co_await sleep_for(1ms);
    go.set();
    std::string event = co_await read_some();
    EXPECT_NE(event.find("data: 1\n"), event.npos);
    co_await send(kGet.substr(10));
    all = co_await read_until("data: 2\n");
  });
  EXPECT_EQ(calls, 2);
  EXPECT_NE(all.find("data: 2\n"), all.npos);
}

// send() waits while the peer does not read, and not for ever.
TEST_F(HttpEventStream, APeerThatDoesNotReadRunsOutOfTime) {
  std::error_code error;
  int sent_events = 0;
  auto body = [&](EventStream& events) -> Task<void> {
    while (true) {
      Result<void> sent = co_await events.send(std::string(1000, 'x'));
      if (!sent) {
        error = sent.error();
        co_return;
      }
      ++sent_events;
    }
  };
  talk(serving(body),
       [&]() -> Task<void> {
         co_await send(kGet);
         co_await sleep_for(40s);
       },
       {}, {.bytes_max = 10'000});
  EXPECT_EQ(error, Error::write_timeout);
  EXPECT_EQ(end, EventStreamEnd::peer_left);
  EXPECT_LT(sent_events, 20);
}

// A failed send() that is thrown is the peer's doing, and not an error of the handler.
TEST_F(HttpEventStream, AThrownSendErrorIsNoError) {
  auto body = [&](EventStream& events) -> Task<void> {
    while (true) {
      Result<void> sent = co_await noncancellable(events.send(std::string(1000, 'x')));
      or_throw(sent);
    }
  };
  talk(serving(body),
       [&]() -> Task<void> {
         co_await send(kGet);
         co_await sleep_for(40s);
       },
       {}, {.bytes_max = 10'000});
  EXPECT_EQ(end, EventStreamEnd::peer_left);
}

TEST_F(HttpEventStream, WhatTheBodyThrowsPasses) {
  auto body = [&](EventStream&) -> Task<void> {
    throw std::system_error(std::make_error_code(std::errc::io_error));
    co_return;
  };
  std::string rest;
  talk(serving(body), [&]() -> Task<void> {
    co_await send(kGet);
    co_await read_head();
    rest = co_await read_some();
  });
  EXPECT_EQ(end, std::nullopt);
  EXPECT_EQ(rest, "") << "the answer is broken off, without its last chunk";
}

// --- The server stops -------------------------------------------------------------------------------

// Hands out one MemoryStream, and then waits: all that Server::serve() needs of a listener.
class OneConnection {
 public:
  explicit OneConnection(net::MemoryStream stream) : stream_(std::move(stream)) {}
  Task<Result<net::MemoryStream>> accept() {
    if (stream_) {
      net::MemoryStream stream = std::move(*stream_);
      stream_.reset();
      co_return stream;
    }
    co_await closed_.wait();
    co_return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
  }
  void close() noexcept { closed_.set(); }
  explicit operator bool() const noexcept { return !closed_.is_set(); }

 private:
  std::optional<net::MemoryStream> stream_;
  Event closed_;
};

TEST_F(HttpEventStream, AnEndlessStreamDoesNotHoldUpTheDrain) {
  bool was_cancelled = false;
  auto body = [&](EventStream& events) -> Task<void> {
    struct Notes {
      bool& flag;
      explicit Notes(bool& to) : flag(to) {}
      Notes(const Notes&) = delete;
      Notes& operator=(const Notes&) = delete;
      ~Notes() { flag = true; }
    } notes(was_cancelled);
    while (true) {
      Result<void> sent = co_await events.send("tick");
      if (!sent) co_return;
      co_await sleep_for(3s);
    }
  };
  routes.get("/", serving(body));
  server.emplace(routes);
  std::string all;
  auto root = [&]() -> Task<void> {
    auto [mine, theirs] = net::memory_streams();
    stream = std::move(mine);
    OneConnection listener(std::move(theirs));
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto read = [&]() -> Task<void> {
        co_await send(kGet);
        all = co_await test::read_to_end(stream);
        stream.close();
      };
      nursery.start(read);
      auto serve = [&]() -> Task<void> { co_await server->serve(listener); };
      auto in_time = co_await timeout(10s, serve);
      EXPECT_FALSE(in_time.has_value());
      co_return join;
    };
    co_await with_nursery(both);
  };
  run(loop, root());
  EXPECT_LT(loop.elapsed(), 11s) << "and not at Limits::drain_timeout, which is 10 s more";
  EXPECT_EQ(end, EventStreamEnd::stopping);
  EXPECT_TRUE(was_cancelled);
  EXPECT_TRUE(all.ends_with("data: tick\n\n\r\n0\r\n\r\n")) << all;
}

// --- The other end ----------------------------------------------------------------------------------

TEST_F(HttpEventStream, OurOwnClientReadsItCompressed) {
  Router zipped;
  zipped.use(Compression());
  std::vector<std::string> ids;
  Event seen;
  auto body = [&](EventStream& events) -> Task<void> {
    for (int i = 1; i <= 3; ++i) {
      std::string id = std::to_string(i), data = "line\nof " + id;
      EventMessage message{.event = "tick", .data = data, .id = id};
      Result<void> sent = co_await events.send(message);
      or_throw(sent);
      co_await seen.wait();  // it has arrived, and is not kept by the encoder
      seen.reset();
    }
  };
  zipped.get("/", serving(body));
  Server served(zipped);
  auto script = [&](test::Peer& peer) -> Task<void> {
    StreamTransport transport(std::move(peer.stream()));
    co_await served.serve_connection(transport);
  };
  test::ClientTalk talk;
  talk(script, [&](Client& client, test::ScriptedConnector&) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/"));
    EXPECT_EQ(response.headers().find("content-type"), "text/event-stream");
    EXPECT_EQ(response.headers().find("vary"), "accept-encoding");
    EventReader reader(response.body());
    while (true) {
      Result<std::optional<ReceivedEvent>> event = co_await reader.next();
      if (!or_throw(event)) break;
      EXPECT_EQ((*event)->event, "tick");
      EXPECT_EQ((*event)->data, "line\nof " + (*event)->id);
      ids.push_back((*event)->id);
      seen.set();
    }
    EXPECT_EQ(reader.last_event_id(), "3");
  });
  EXPECT_EQ(ids, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(end, EventStreamEnd::finished);
}

}  // namespace
