// SPDX-License-Identifier: MIT
// Connections: queues, cancellation, time, the end. A server of ours; the other side is ours too, or bytes by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/ws_fixture.h"
#include "weft/base/log.h"
#include "weft/net/buffered.h"
#include "weft/net/tcp.h"
#include "weft/testing/virtual_loop.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using test::close_frame;
using test::control_frame;
using test::converse;
using test::Frame;
using test::handshake;
using test::text_frame;
using weft::testing::VirtualLoop;

// A client that is bytes, past its handshake.
class RawPeer {
 public:
  explicit RawPeer(net::MemoryStream& stream) : stream_(stream) {}

  Task<void> send(std::string bytes) {
    Result<void> sent = co_await net::write_all(stream_, bytes);
    if (!sent) is_gone_ = true;
  }
  // The next frame; of opcode -1: the end.
  Task<Frame> next() {
    Frame frame;
    while (true) {
      std::string_view rest = got_;
      if (test::take_frame(rest, frame)) {
        got_.erase(0, got_.size() - rest.size());
        co_return frame;
      }
      std::array<std::byte, 4096> buffer;
      Result<std::size_t> count = co_await stream_.read_some(buffer);
      if (!count || *count == 0) break;
      got_.append(reinterpret_cast<const char*>(buffer.data()), *count);
    }
    frame.opcode = -1;
    co_return frame;
  }
  // Whole messages and pongs, until the end or a Close; that too.
  Task<std::vector<std::string>> rest() {
    std::vector<std::string> all;
    std::string message;
    while (true) {
      Frame frame = co_await next();
      if (frame.opcode == -1) break;
      if (frame.opcode >= 8) {
        all.push_back(std::to_string(frame.opcode) + ":" + frame.payload);
        if (frame.opcode == 8) break;
        continue;
      }
      message += frame.payload;
      if (frame.fin) all.push_back(std::exchange(message, ""));
    }
    co_return all;
  }
  [[nodiscard]] net::MemoryStream& stream() noexcept { return stream_; }
  [[nodiscard]] bool is_gone() const noexcept { return is_gone_; }

  Task<void> shake_hands() {
    co_await send(handshake());
    while (got_.find("\r\n\r\n") == got_.npos) {
      std::array<std::byte, 4096> buffer;
      std::size_t count = or_throw(co_await stream_.read_some(buffer));
      got_.append(reinterpret_cast<const char*>(buffer.data()), count);
    }
    EXPECT_EQ(got_.substr(9, 3), "101");
    got_.erase(0, got_.find("\r\n\r\n") + 4);
  }

 private:
  net::MemoryStream& stream_;
  std::string got_;
  bool is_gone_ = false;
};

using ServerTalk = std::function<Task<void>(ws::Connection&)>;
using PeerTalk = std::function<Task<void>(RawPeer&)>;

template <class Loop>
void against_bytes(Loop& loop, http::Handler& handler, PeerTalk peer,
                   net::MemoryStreamOptions wire = {}) {
  http::Server server(handler);
  auto both = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams(wire);
    net::MemoryStream mine = std::move(near);
    http::StreamTransport transport(std::move(far));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto ask = [&]() -> Task<void> {
      RawPeer raw(mine);
      co_await raw.shake_hands();
      co_await peer(raw);
    };
    co_await all_of(serve(), ask());
  };
  run(loop, both());
  EXPECT_EQ(server.connections(), 0u);
}
template <class Loop>
void against_bytes(Loop& loop, ServerTalk talk, PeerTalk peer, ws::Limits limits = {},
                   net::MemoryStreamOptions wire = {}) {
  ws::EndpointOptions options;
  options.limits = limits;
  auto served = [&](ws::Connection& socket, const http::Request&) { return talk(socket); };
  ws::Endpoint endpoint(served, options);
  against_bytes(loop, endpoint, peer, wire);
}

// --- Messages ---------------------------------------------------------------------------------------

TEST(WebSocket, EchoesBetweenOurOwnEnds) {
  ws::EndpointOptions options;
  options.limits.message_bytes_max = 3'000'000;
  options.limits.frame_bytes_max = 70'000;  // what is sent is torn: fragment_bytes
  for (bool deflate : {false, true}) {
    ws::ClientOptions client;
    client.limits = options.limits;
    if (deflate) options.deflate = client.deflate.emplace();
    ws::Endpoint endpoint(test::echo, options);
    EventLoop loop;
    std::size_t echoed = 0;
    ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
      EXPECT_EQ(socket.is_compressed(), deflate);
      std::mt19937 random(7);
      for (std::size_t size : {0, 1, 63, 64, 125, 126, 127, 65'535, 65'536, 2'500'000}) {
        ws::Message message(ws::Kind::binary, std::string(size, 'x'));
        for (char& c : message.data) c = static_cast<char>(random() % 7 == 0 ? random() : c);
        Result<void> sent = co_await socket.send(message);
        EXPECT_TRUE(sent);
        Result<ws::Message> back = co_await socket.receive();
        EXPECT_TRUE(back && *back == message) << size;
        ++echoed;
      }
      Result<void> sent = co_await socket.send("\xe2\x82\xac");
      Result<ws::Message> back = co_await socket.receive();
      EXPECT_TRUE(sent && back && back->is_text() && back->data == "\xe2\x82\xac");
    };
    Result<ws::Close> end = converse(loop, endpoint, talk, client);
    EXPECT_EQ(end, ws::Close(1000, ""));
    EXPECT_EQ(echoed, 10u);
  }
}

TEST(WebSocket, MayDeflateWithoutContext) {
  for (int which = 0; which < 4; ++which) {
    ws::EndpointOptions options;
    ws::ClientOptions client;
    options.deflate.emplace().server_context_takeover = (which & 1) != 0;
    client.deflate.emplace().client_context_takeover = (which & 2) != 0;
    ws::Endpoint endpoint(test::echo, options);
    VirtualLoop loop;
    ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
      for (int i = 0; i < 20; ++i) {
        std::string text =
            "the same words again and again, the same words again and again: " + std::to_string(i);
        Result<void> sent = co_await socket.send(text);
        Result<ws::Message> back = co_await socket.receive();
        EXPECT_TRUE(sent && back && back->data == text);
      }
    };
    EXPECT_EQ(converse(loop, endpoint, talk, client), ws::Close(1000, ""));
  }
}

// A kilobyte that would be a gigabyte.
TEST(WebSocket, WhatInflatesIsBounded) {
  ws::EndpointOptions options;
  options.deflate.emplace();
  options.limits.message_bytes_max = 100'000;
  ws::ClientOptions client;
  client.deflate.emplace();
  ws::Endpoint endpoint(test::echo, options);
  VirtualLoop loop;
  std::error_code heard;
  ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
    std::string bomb(10'000'000, 'x');
    [[maybe_unused]] Result<void> sent = co_await socket.send(std::as_bytes(std::span(bomb)));
    EXPECT_LT(socket.queued_bytes(), 100'000u);
    Result<ws::Message> back = co_await socket.receive();
    heard = back.error();
  };
  Result<ws::Close> end = converse(loop, endpoint, talk, client);
  EXPECT_EQ(end.value().code, 1009);
  EXPECT_EQ(heard, ws::Error::closed);
}

TEST(WebSocket, AFrameHasABoundOfItsOwn) {
  VirtualLoop loop;
  ws::Limits limits;
  limits.frame_bytes_max = 10;
  std::error_code end;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    Result<ws::Message> first = co_await socket.receive();
    EXPECT_EQ(first.value().data, "0123456789");
    first = co_await socket.receive();
    if (!first) end = first.error();
    EXPECT_EQ(socket.closed().value_or(ws::Close()).code, 1009);
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    co_await raw.send(text_frame("0123456789") + text_frame("0123456789x"));
    std::vector<std::string> all = co_await raw.rest();
    EXPECT_EQ(all.back().substr(0, 4), "8:\x03\xf1");
  };
  against_bytes(loop, talk, peer, limits);
  EXPECT_EQ(end, ws::Error::message_too_big);
}

// --- The send queue ---------------------------------------------------------------------------------

std::string numbered(std::size_t task, std::size_t number, std::size_t bytes) {
  std::string text = std::to_string(task) + "/" + std::to_string(number) + ":";
  return text.append(bytes, static_cast<char>('a' + task % 26));
}

// W1. Ten tasks, messages of many fragments, a peer that reads a little at a time.
TEST(WebSocketQueue, SendersAreServedInOrderAndWhole) {
  for (std::uint64_t seed : {0, 1, 2, 3}) {
    VirtualLoop loop;
    loop.shuffle_by(seed);
    ws::Limits limits;
    limits.send_queue_bytes_max = 2000;
    limits.fragment_bytes = 100;
    limits.output_bytes = 300;
    std::vector<std::string> called, received;
    auto talk = [&](ws::Connection& socket) -> Task<void> {
      auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
        for (std::size_t task = 0; task < 10; ++task) {
          auto send = [&, task]() -> Task<void> {
            for (std::size_t i = 0; i < 10; ++i) {
              std::string text = numbered(task, i, i * 97);
              called.push_back(text);
              Result<void> sent = co_await socket.send(text);
              EXPECT_TRUE(sent);
              EXPECT_LE(socket.queued_bytes(), limits.send_queue_bytes_max);
            }
          };
          nursery.start(send);
        }
        co_return join;
      };
      co_await with_nursery(all);
    };
    auto peer = [&](RawPeer& raw) -> Task<void> {
      received = co_await raw.rest();
      co_await raw.send(close_frame(1000));
      co_await test::read_to_end(raw.stream());
    };
    net::MemoryStreamOptions wire;
    wire.bytes_max = 77;
    against_bytes(loop, talk, peer, limits, wire);
    ASSERT_EQ(received.size(), 101u);
    received.pop_back();
    EXPECT_EQ(received, called) << "seed " << seed;
  }
}

TEST(WebSocketQueue, IsBoundedAndWaits) {
  VirtualLoop loop;
  ws::Limits limits;
  limits.send_queue_bytes_max = 1000;
  limits.output_bytes = 200;
  std::size_t sent_count = 0;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    std::string text(136, 'x');
    while (sent_count < 100) {
      Result<void> sent = co_await socket.send(text);
      EXPECT_TRUE(sent);
      EXPECT_LE(socket.queued_bytes(), 1000u);
      ++sent_count;
    }
    EXPECT_TRUE((co_await socket.flush()).has_value());
    EXPECT_EQ(socket.queued_bytes(), 0u);
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    co_await sleep_for(1s);
    std::size_t before = sent_count;
    EXPECT_GE(before, 5u);
    EXPECT_LE(before, 9u) << "five are in the queue, the others on the wire";
    co_await sleep_for(1s);
    EXPECT_EQ(sent_count, before);
    std::vector<std::string> all = co_await raw.rest();
    EXPECT_EQ(all.size(), 101u);
    co_await raw.send(close_frame(1000));
  };
  net::MemoryStreamOptions wire;
  wire.bytes_max = 200;
  against_bytes(loop, talk, peer, limits, wire);
  EXPECT_EQ(sent_count, 100u);
}

TEST(WebSocketQueue, AMessageThatIsLargerThanItGoesAlone) {
  VirtualLoop loop;
  ws::Limits limits;
  limits.send_queue_bytes_max = 10;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    std::string text(100'000, 'x');
    for (int i = 0; i < 3; ++i) EXPECT_TRUE((co_await socket.send(text)).has_value());
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    std::vector<std::string> all = co_await raw.rest();
    EXPECT_EQ(all.size(), 4u);
    co_await raw.send(close_frame(1000));
  };
  against_bytes(loop, talk, peer, limits);
}

TEST(WebSocketQueue, TrySendSaysNoAndWaitsForNone) {
  VirtualLoop loop;
  ws::Limits limits;
  limits.send_queue_bytes_max = 500;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    ws::Message message(ws::Kind::text, std::string(100, 'x'));
    EXPECT_TRUE(socket.try_send(message));
    EXPECT_TRUE(socket.try_send(message));
    EXPECT_TRUE(socket.try_send(message));
    EXPECT_FALSE(socket.try_send(message));
    EXPECT_FALSE(socket.try_send(ws::Message(ws::Kind::text, "\xff"))) << "no text";
    auto waits = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto send = [&]() -> Task<void> {
        std::string text(450, 'y');
        EXPECT_TRUE((co_await socket.send(text)).has_value());
      };
      nursery.start(send);
      co_await yield();
      co_await yield();
      EXPECT_FALSE(socket.try_send(ws::Message(ws::Kind::text, ""))) << "not past who waits";
      co_return join;
    };
    co_await with_nursery(waits);
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    co_await sleep_for(1s);
    std::vector<std::string> all = co_await raw.rest();
    EXPECT_EQ(all.size(), 5u);
    co_await raw.send(close_frame(1000));
  };
  net::MemoryStreamOptions wire;
  wire.bytes_max = 50;
  against_bytes(loop, talk, peer, limits, wire);
}

// 5.4: a control frame goes between the fragments of a message.
TEST(WebSocketQueue, APongOvertakesALongMessage) {
  VirtualLoop loop;
  ws::Limits limits;
  limits.fragment_bytes = 100;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    std::string text(100'000, 'x');
    EXPECT_TRUE((co_await socket.send(text)).has_value());
    Result<ws::Message> none = co_await socket.receive();
    EXPECT_EQ(none.error(), ws::Error::closed);
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    co_await raw.send(control_frame(9, "now"));
    std::vector<std::string> all;
    std::size_t bytes = 0;
    while (true) {
      Frame frame = co_await raw.next();
      if (frame.opcode == 10) {
        EXPECT_EQ(frame.payload, "now");
        EXPECT_LT(bytes, 2000u) << "it did not wait for the message";
        break;
      }
      EXPECT_LE(frame.payload.size(), 100u);
      bytes += frame.payload.size();
      if (frame.fin || frame.opcode < 0) {
        ADD_FAILURE() << "no pong before the end of the message";
        break;
      }
    }
    co_await raw.send(close_frame(1000));
    co_await raw.rest();
  };
  net::MemoryStreamOptions wire;
  wire.bytes_max = 300;
  against_bytes(loop, talk, peer, limits, wire);
}

// --- Cancellation -----------------------------------------------------------------------------------

// W3. Sends that are given up after a random while: what was reported as sent arrives, whole and in order; nothing else does.
TEST(WebSocketCancel, ASendHasSentAllOrNothing) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    VirtualLoop loop;
    loop.shuffle_by(seed);
    std::mt19937 random(seed);
    ws::Limits limits;
    limits.send_queue_bytes_max = 600;
    limits.fragment_bytes = 50;
    limits.output_bytes = 120;
    std::vector<std::string> sent_texts, received;
    std::size_t given_up = 0;
    auto talk = [&](ws::Connection& socket) -> Task<void> {
      for (std::size_t i = 0; i < 60; ++i) {
        std::string text = numbered(i, i, random() % 300);
        auto sent = co_await timeout(std::chrono::milliseconds(random() % 4), socket.send(text));
        if (sent) {
          EXPECT_TRUE(sent->has_value());
          sent_texts.push_back(text);
        } else {
          ++given_up;
        }
      }
    };
    auto peer = [&](RawPeer& raw) -> Task<void> {
      std::string message;
      while (true) {
        co_await sleep_for(std::chrono::milliseconds(random() % 3));
        Frame frame = co_await raw.next();
        if (frame.opcode == 8 || frame.opcode < 0) break;
        message += frame.payload;
        if (frame.fin) received.push_back(std::exchange(message, ""));
      }
      co_await raw.send(close_frame(1000));
    };
    net::MemoryStreamOptions wire;
    wire.bytes_max = 60;
    wire.read_bytes_max = 60;
    against_bytes(loop, talk, peer, limits, wire);
    EXPECT_EQ(received, sent_texts) << "seed " << seed;
    EXPECT_GT(given_up, 0u) << "seed " << seed;
    EXPECT_GT(sent_texts.size(), 0u) << "seed " << seed;
  }
}

// W3. Receives that are given up at every byte.
TEST(WebSocketCancel, AReceiveLosesNothing) {
  for (bool deflate : {false, true}) {
    VirtualLoop loop;
    std::vector<std::string> received;
    std::size_t given_up = 0;
    ws::EndpointOptions options;
    if (deflate) options.deflate.emplace();
    auto talk = [&](ws::Connection& socket, const http::Request&) -> Task<void> {
      while (true) {
        auto message = co_await timeout(1ms, socket.receive());
        if (!message) {
          if (++given_up == 100'000) {
            ADD_FAILURE() << "what was sent does not come";
            co_return;
          }
        } else if (!*message) {
          EXPECT_EQ(message->error(), ws::Error::closed);
          co_return;
        } else {
          received.push_back((*message)->data);
        }
      }
    };
    ws::Endpoint endpoint(talk, options);
    auto peer = [&](RawPeer& raw) -> Task<void> {
      Frame first{.opcode = 1, .payload = "Hel", .fin = false};
      Frame last{.opcode = 0, .payload = "lo"};
      std::string bytes = test::to_bytes(first) + control_frame(9, "p") + test::to_bytes(last) +
                          text_frame(std::string(200, 'x')) + close_frame(1000);
      for (char c : bytes) {
        co_await raw.send(std::string(1, c));
        co_await sleep_for(5ms);
      }
      std::vector<std::string> all = co_await raw.rest();
      EXPECT_EQ(all.front(), "10:p");
    };
    against_bytes(loop, endpoint, peer);
    EXPECT_EQ(received, (std::vector<std::string>{"Hello", std::string(200, 'x')}));
    EXPECT_GT(given_up, 100u);
  }
}

// W6. Whoever waits in a connection that ends is let go before it is gone.
TEST(WebSocketCancel, WhoWaitsInItIsLetGo) {
  for (int run_number = 0; run_number < 60; ++run_number) {
    int how = run_number % 3;
    VirtualLoop loop;
    loop.shuffle_by(static_cast<std::uint64_t>(run_number / 3));
    ws::Limits limits;
    limits.send_queue_bytes_max = 100;
    limits.write_timeout = 3s;
    std::vector<std::error_code> ends;
    auto whole = [&]() -> Task<void> {
      auto outer = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto talk = [&](ws::Connection& socket, const http::Request&) -> Task<void> {
          for (int i = 0; i < 5; ++i) {
            auto send = [&]() -> Task<void> {
              std::string text(1000, 'x');
              while (true) {
                Result<void> sent = co_await socket.send(text);
                if (sent) continue;
                ends.push_back(sent.error());
                co_return;
              }
            };
            nursery.start(send);  // it outlives the talk
          }
          if (how == 2) co_await sleep_for(1s);
          Result<ws::Message> none = co_await socket.receive();
        };
        ws::EndpointOptions options;
        options.limits = limits;
        ws::Endpoint endpoint(talk, options);
        http::Server server(endpoint);
        auto [near, far] = net::memory_streams();
        net::MemoryStream mine = std::move(near);
        http::StreamTransport transport(std::move(far));
        auto serve = [&]() -> Task<void> {
          auto in_time = co_await timeout(how == 1 ? 1s : 1h, server.serve_connection(transport));
          EXPECT_EQ(in_time.has_value(), how != 1);
        };
        auto ask = [&]() -> Task<void> {
          RawPeer raw(mine);
          co_await raw.shake_hands();
          co_await sleep_for(500ms);
          if (how != 1) mine.close();
          co_await sleep_for(5s);
        };
        co_await all_of(serve(), ask());
        co_return join;
      };
      co_await with_nursery(outer);
    };
    run(loop, whole());
    EXPECT_EQ(ends.size(), 5u);
  }
}

// --- Time -------------------------------------------------------------------------------------------

TEST(WebSocketTime, ASilentPeerIsPingedAndThenLost) {
  VirtualLoop loop;
  std::error_code end;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    Result<ws::Message> message = co_await socket.receive();
    end = message.error();
    EXPECT_EQ(socket.closed(), ws::Close(1006, ""));
    EXPECT_EQ((co_await socket.send("x")).error(), ws::Error::pong_timeout) << "W4";
    EXPECT_EQ((co_await socket.receive()).error(), ws::Error::pong_timeout) << "W4";
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    Frame frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, 9);
    EXPECT_EQ(loop.elapsed(), 30s);
    co_await raw.send(control_frame(10, ""));
    frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, 9);
    EXPECT_EQ(loop.elapsed(), 60s);
    frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, -1);
    EXPECT_EQ(loop.elapsed(), 80s);
  };
  against_bytes(loop, talk, peer);
  EXPECT_EQ(end, ws::Error::pong_timeout);
}

TEST(WebSocketTime, PingsMayBeOff) {
  VirtualLoop loop;
  ws::Limits limits;
  limits.ping_interval = 0ms;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    Result<ws::Message> message = co_await socket.receive();
    EXPECT_EQ(message.value().data, "late");
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    co_await sleep_for(10h);
    co_await raw.send(text_frame("late"));
    Frame frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, 8);
    co_await raw.send(close_frame(1000));
  };
  against_bytes(loop, talk, peer, limits);
}

TEST(WebSocketTime, AnUnansweredCloseEnds) {
  VirtualLoop loop;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    Result<void> closed = co_await socket.close(4001, "enough");
    EXPECT_EQ(closed.error(), ws::Error::close_timeout);
    EXPECT_EQ(socket.closed()->code, 1006);
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    Frame frame = co_await raw.next();
    EXPECT_EQ(frame.payload,
              "\x0f\xa1"
              "enough");
    frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, -1);
    EXPECT_EQ(loop.elapsed(), 5s);
  };
  against_bytes(loop, talk, peer);
}

// A stream that counts how often it is read, and gives up before a test would hang.
class CountedStream {
 public:
  CountedStream(net::MemoryStream stream, int& reads) : stream_(std::move(stream)), reads_(reads) {}

  Task<Result<std::size_t>> read_some(std::span<std::byte> buffer) {
    if (++reads_ > 1000) co_return std::unexpected(make_error_code(std::errc::io_error));
    co_return co_await stream_.read_some(buffer);
  }
  auto write_some(std::span<const std::byte> bytes) { return stream_.write_some(bytes); }
  auto write_some(std::span<const net::Part> parts) { return stream_.write_some(parts); }
  auto shutdown_write() { return stream_.shutdown_write(); }
  void close() noexcept { stream_.close(); }

 private:
  net::MemoryStream stream_;
  int& reads_;
};

// Who waits for the peer's Close when a ping, or a pong, would be due waits, and does not ask again and again.
TEST(WebSocketTime, AnUnansweredCloseWaitsPastThePings) {
  for (std::chrono::seconds before : {28s, 48s}) {
    VirtualLoop loop;
    int reads = 0;
    auto talk = [&](ws::Connection& socket, const http::Request&) -> Task<void> {
      auto quiet = co_await timeout(before, socket.receive());
      EXPECT_FALSE(quiet.has_value());
      Result<void> closed = co_await socket.close();
      EXPECT_EQ(closed.error(), ws::Error::close_timeout);
      EXPECT_EQ(loop.elapsed(), before + 5s);
    };
    ws::Endpoint endpoint(talk);
    http::Server server(endpoint);
    auto whole = [&]() -> Task<void> {
      auto [near, far] = net::memory_streams();
      net::MemoryStream mine = std::move(near);
      http::StreamTransport transport(CountedStream(std::move(far), reads));
      auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
      auto ask = [&]() -> Task<void> {
        RawPeer raw(mine);
        co_await raw.shake_hands();
        Frame frame;
        while (frame.opcode >= 0) frame = co_await raw.next();
      };
      co_await all_of(serve(), ask());
    };
    run(loop, whole());
    EXPECT_LT(reads, 10);
  }
}

TEST(WebSocketTime, APeerThatTakesNothingIsLost) {
  VirtualLoop loop;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    std::string text(200'000, 'x');
    Result<void> sent;
    while (sent) sent = co_await socket.send(text);
    EXPECT_EQ(sent.error(), ws::Error::write_timeout);
    EXPECT_EQ(loop.elapsed(), 30s);
  };
  auto peer = [&](RawPeer&) -> Task<void> { co_await sleep_for(60s); };
  against_bytes(loop, talk, peer);
}

// --- The end ----------------------------------------------------------------------------------------

TEST(WebSocketEnd, AStreamThatEndsWithoutACloseIsLost) {
  VirtualLoop loop;
  std::error_code end;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    Result<ws::Message> message = co_await socket.receive();
    end = message.error();
    EXPECT_EQ(socket.closed(), ws::Close(1006, ""));
  };
  auto half = [&](RawPeer& raw) -> Task<void> {
    co_await raw.send(text_frame("whole").substr(0, 5));
    [[maybe_unused]] Result<void> shut = co_await raw.stream().shutdown_write();
    Frame frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, -1);
  };
  against_bytes(loop, talk, half);
  EXPECT_EQ(end, net::Error::unexpected_end);
}

TEST(WebSocketEnd, ACloseGoesBehindWhatIsQueuedAndNothingBehindIt) {
  VirtualLoop loop;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    EXPECT_TRUE((co_await socket.send("one")).has_value());
    EXPECT_TRUE((co_await socket.send("two")).has_value());
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto close = [&]() -> Task<void> {
        EXPECT_TRUE((co_await socket.close(4000, "done")).has_value());
        EXPECT_TRUE((co_await socket.close(4001, "again")).has_value()) << "without effect";
      };
      nursery.start(close);
      for (int i = 0; i < 5; ++i) co_await yield();
      EXPECT_EQ((co_await socket.send("late")).error(), ws::Error::closed);
      co_return join;
    };
    co_await with_nursery(both);
    EXPECT_EQ(socket.closed(), ws::Close(4000, "yes"));
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    std::vector<std::string> all = co_await raw.rest();
    EXPECT_EQ(all, (std::vector<std::string>{"one", "two",
                                             "8:\x0f\xa0"
                                             "done"}));
    co_await raw.send(text_frame("dropped") + close_frame(4000, "yes"));
    Frame frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, -1);
  };
  against_bytes(loop, talk, peer);
}

// What comes between our Close and the peer's is delivered to who receives.
TEST(WebSocketEnd, WhoReceivesHearsOfAClose) {
  VirtualLoop loop;
  std::vector<std::string> received;
  std::error_code end;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto listen = [&]() -> Task<void> {
        while (true) {
          Result<ws::Message> message = co_await socket.receive();
          if (!message) {
            end = message.error();
            co_return;
          }
          received.push_back(message->data);
        }
      };
      nursery.start(listen);
      co_await sleep_for(1s);
      EXPECT_TRUE((co_await socket.close()).has_value());
      co_return join;
    };
    co_await with_nursery(both);
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    Frame frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, 8);
    co_await raw.send(text_frame("last words") + close_frame(1000));
  };
  against_bytes(loop, talk, peer);
  EXPECT_EQ(received, std::vector<std::string>{"last words"});
  EXPECT_EQ(end, ws::Error::closed);
}

// Only the wait of a close() that is cancelled ends: what comes before the peer's Close can still be received.
TEST(WebSocketEnd, ACancelledCloseLetsOthersReceive) {
  VirtualLoop loop;
  bool has_ended = false;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    auto closed = co_await timeout(10ms, socket.close(4000, "done"));
    EXPECT_FALSE(closed.has_value());
    EXPECT_EQ((co_await socket.send("late")).error(), ws::Error::closed);
    Result<ws::Message> message = co_await socket.receive();
    EXPECT_TRUE(message && message->data == "last words");
    message = co_await socket.receive();
    EXPECT_EQ(message.error(), ws::Error::closed);
    EXPECT_EQ(loop.elapsed(), 2s);
    EXPECT_EQ(socket.closed(), ws::Close(4000, "yes"));
    has_ended = true;
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    Frame frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, 8);
    co_await sleep_for(1s);
    co_await raw.send(text_frame("last words"));
    co_await sleep_for(1s);
    co_await raw.send(close_frame(4000, "yes"));
    frame = co_await raw.next();
    EXPECT_EQ(frame.opcode, -1);
  };
  against_bytes(loop, talk, peer);
  EXPECT_TRUE(has_ended);
}

// The same for those who waited behind it: one that receives, one that closes too.
TEST(WebSocketEnd, ACancelledCloseGivesItsTurnToWhoWaits) {
  for (bool receives : {false, true}) {
    VirtualLoop loop;
    bool has_ended = false;
    auto talk = [&](ws::Connection& socket) -> Task<void> {
      auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto first = [&]() -> Task<void> {
          auto closed = co_await timeout(500ms, socket.close(4000, "done"));
          EXPECT_FALSE(closed.has_value());
        };
        nursery.start(first);
        co_await sleep_for(100ms);
        if (receives) {
          Result<ws::Message> message = co_await socket.receive();
          EXPECT_TRUE(message && message->data == "last words");
          message = co_await socket.receive();
          EXPECT_EQ(message.error(), ws::Error::closed);
        } else {
          EXPECT_TRUE((co_await socket.close()).has_value());
        }
        EXPECT_EQ(loop.elapsed(), 1s);
        has_ended = true;
        co_return join;
      };
      co_await with_nursery(both);
    };
    auto peer = [&](RawPeer& raw) -> Task<void> {
      Frame frame = co_await raw.next();
      EXPECT_EQ(frame.opcode, 8);
      co_await sleep_for(1s);
      co_await raw.send(text_frame("last words") + close_frame(4000));
    };
    against_bytes(loop, talk, peer);
    EXPECT_TRUE(has_ended);
  }
}

TEST(WebSocketEnd, MistakesAreRefused) {
  VirtualLoop loop;
  auto talk = [&](ws::Connection& socket) -> Task<void> {
    for (int code : {0, 999, 1004, 1005, 1006, 1015, 2999, 5000}) {
      bool is_refused = false;
      try {
        [[maybe_unused]] Result<void> closed =
            co_await socket.close(static_cast<ws::CloseCode>(code));
      } catch (const UsageError&) {
        is_refused = true;
      }
      EXPECT_TRUE(is_refused) << code;
    }
    for (std::string reason : {std::string(124, 'x'), std::string("\xff")}) {
      bool is_refused = false;
      try {
        [[maybe_unused]] Result<void> closed = co_await socket.close(1000, reason);
      } catch (const UsageError&) {
        is_refused = true;
      }
      EXPECT_TRUE(is_refused) << reason;
    }
    EXPECT_EQ((co_await socket.send("\xc0\xaf")).error(), ws::Error::bad_text);
    auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto first = [&]() -> Task<void> { Result<ws::Message> none = co_await socket.receive(); };
      nursery.start(first);
      co_await yield();
      co_await yield();
      bool is_refused = false;
      try {
        Result<ws::Message> none = co_await socket.receive();
      } catch (const UsageError&) {
        is_refused = true;
      }
      EXPECT_TRUE(is_refused) << "a second receiver";
      co_return cancel;
    };
    co_await with_nursery(both);
  };
  auto peer = [&](RawPeer& raw) -> Task<void> {
    std::vector<std::string> all = co_await raw.rest();
    EXPECT_EQ(all.size(), 1u) << "nothing but the Close";
    co_await raw.send(close_frame(1000));
  };
  against_bytes(loop, talk, peer);
}

// --- Handlers ---------------------------------------------------------------------------------------

class Recorder final : public ws::Handler {
 public:
  Task<void> on_open(ws::Connection& socket, const http::Request& request) override {
    log.push_back("open " + std::string(request.path()) + " " + std::string(socket.subprotocol()));
    [[maybe_unused]] Result<void> sent = co_await socket.send("welcome");
  }
  Task<void> on_message(ws::Connection& socket, ws::Message message) override {
    log.push_back("message " + message.data);
    if (message.data == "throw") throw std::runtime_error("on purpose");
    [[maybe_unused]] Result<void> sent = co_await socket.send(message);
  }
  Task<void> on_close(ws::Connection&, ws::CloseCode code, std::string_view reason) override {
    co_await yield();  // it may wait, also when it was cancelled
    log.push_back("close " + std::to_string(code) + " " + std::string(reason));
  }
  std::vector<std::string> log;
};

TEST(WebSocketHandler, HearsOfAllOnce) {
  Recorder recorder;
  ws::EndpointOptions options;
  options.subprotocols = {"v1"};
  ws::Endpoint endpoint(recorder, options);
  http::Router routes;
  routes.get("/rooms/{name}", endpoint);
  VirtualLoop loop;
  ws::ClientOptions client;
  client.subprotocols = {"v2", "v1"};
  ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
    EXPECT_EQ(socket.subprotocol(), "v1");
    EXPECT_EQ((co_await socket.receive()).value().data, "welcome");
    EXPECT_TRUE((co_await socket.send("hi")).has_value());
    EXPECT_EQ((co_await socket.receive()).value().data, "hi");
    EXPECT_TRUE((co_await socket.close(4007, "tea")).has_value());
  };
  Result<ws::Close> end = converse(loop, routes, talk, client, {}, "/rooms/blue");
  EXPECT_EQ(end, ws::Close(4007, "tea"));
  EXPECT_EQ(recorder.log,
            (std::vector<std::string>{"open /rooms/blue v1", "message hi", "close 4007 tea"}));
}

TEST(WebSocketHandler, WhatItThrowsClosesWith1011) {
  static int logged;
  logged = 0;
  LogSink before = set_log_sink([](LogLevel, std::string_view text) noexcept {
    if (text.find("on purpose") != text.npos) ++logged;
  });
  Recorder recorder;
  ws::Endpoint endpoint(recorder);
  VirtualLoop loop;
  ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
    EXPECT_TRUE((co_await socket.send("throw")).has_value());
    while (true) {
      Result<ws::Message> message = co_await socket.receive();
      if (!message) break;
    }
  };
  EXPECT_EQ(converse(loop, endpoint, talk).value().code, 1011);
  set_log_sink(before);
  EXPECT_EQ(logged, 1);
  EXPECT_EQ(recorder.log, (std::vector<std::string>{"open / ", "message throw", "close 1011 "}));
}

TEST(WebSocketHandler, IsToldWhenItIsCancelled) {
  Recorder recorder;
  ws::Endpoint endpoint(recorder);
  http::Server server(endpoint);
  VirtualLoop loop;
  auto whole = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams();
    net::MemoryStream mine = std::move(near);
    http::StreamTransport transport(std::move(far));
    auto serve = [&]() -> Task<void> {
      auto in_time = co_await timeout(1s, server.serve_connection(transport));
      EXPECT_FALSE(in_time);
    };
    auto ask = [&]() -> Task<void> {
      RawPeer raw(mine);
      co_await raw.shake_hands();
      std::vector<std::string> all = co_await raw.rest();
      EXPECT_EQ(all, std::vector<std::string>{"welcome"});
    };
    co_await all_of(serve(), ask());
  };
  run(loop, whole());
  EXPECT_EQ(recorder.log, (std::vector<std::string>{"open / ", "close 1006 "}));
}

// Over TCP: the server is stopped, and says so.
TEST(WebSocketHandler, AServerThatStopsSays1001) {
  Recorder recorder;
  ws::Endpoint endpoint(recorder);
  EventLoop loop;
  Result<ws::Close> end = std::unexpected(std::error_code());
  auto whole = [&]() -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    net::Address where = or_throw(listener.local_address());
    http::Server server(endpoint);
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      auto serve = [&]() -> Task<void> { co_await server.serve(listener); };
      nursery.start(serve);
      net::TcpStream stream = or_throw(co_await net::TcpStream::connect(where));
      ws::ClientTalk talk = [&](ws::Connection& socket) -> Task<void> {
        EXPECT_EQ((co_await socket.receive()).value().data, "welcome");
        nursery.cancel();
        Result<ws::Message> none = co_await noncancellable(socket.receive());
        EXPECT_EQ(none.error(), ws::Error::closed);
      };
      Task<Result<ws::Close>> talking = ws::connect(std::move(stream), "localhost", "/", talk);
      end = co_await noncancellable(std::move(talking));
      co_return join;
    };
    co_await with_nursery(body);
  };
  run(loop, whole());
  EXPECT_EQ(end, ws::Close(1001, "the server stops"));
  EXPECT_EQ(recorder.log.back(), "close 1001 the server stops");
}

// --- Many -------------------------------------------------------------------------------------------

// What one says all hear, in one order; one that does not read loses messages, and disturbs nobody.
TEST(WebSocketMany, BroadcastReachesAllButTheSlow) {
  constexpr std::size_t kMembers = 200, kMessages = 50;
  VirtualLoop loop;
  std::vector<ws::Connection*> members;
  std::size_t dropped = 0;
  ws::EndpointOptions options;
  options.limits.send_queue_bytes_max = 10'000;
  auto join_room = [&](ws::Connection& socket, const http::Request&) -> Task<void> {
    members.push_back(&socket);
    while (true) {
      Result<ws::Message> message = co_await socket.receive();
      if (!message) break;
      for (ws::Connection* member : members) {
        if (!member->try_send(*message)) ++dropped;
      }
    }
    std::erase(members, &socket);
  };
  ws::Endpoint endpoint(join_room, options);
  http::Server server(endpoint);
  std::vector<std::vector<std::string>> heard(kMembers);
  auto whole = [&]() -> Task<void> {
    Latch joined(kMembers);
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (std::size_t i = 0; i < kMembers; ++i) {
        auto member = [&, i]() -> Task<void> {
          net::MemoryStreamOptions wire;
          wire.bytes_max = 2000;
          auto [near, far] = net::memory_streams(wire);
          net::MemoryStream mine = std::move(near);
          http::StreamTransport transport(std::move(far));
          auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
          ws::ClientTalk talk = [&, i](ws::Connection& socket) -> Task<void> {
            joined.count_down();
            co_await joined.wait();
            if (i == 0) {  // speaks
              for (std::size_t n = 0; n < kMessages; ++n) {
                std::string text = numbered(n, n, 500);
                EXPECT_TRUE((co_await socket.send(text)).has_value());
                heard[i].push_back((co_await socket.receive()).value().data);
              }
              co_await sleep_for(1s);
            } else if (i == 1) {  // sleeps
              co_await sleep_for(2s);
            } else {
              while (heard[i].size() < kMessages) {
                heard[i].push_back((co_await socket.receive()).value().data);
              }
            }
          };
          auto ask = [&]() -> Task<void> {
            Task<Result<ws::Close>> talking =
                ws::connect(std::move(mine), "example.org", "/", talk);
            Result<ws::Close> end = co_await std::move(talking);
            EXPECT_EQ(end.value().code, 1000);
          };
          co_await all_of(serve(), ask());
        };
        nursery.start(member);
      }
      co_return join;
    };
    co_await with_nursery(all);
  };
  run(loop, whole());
  EXPECT_TRUE(members.empty());
  EXPECT_EQ(heard[0].size(), kMessages);
  for (std::size_t i = 2; i < kMembers; ++i) EXPECT_EQ(heard[i], heard[0]) << i;
  EXPECT_GT(dropped, 0u);
  EXPECT_LT(dropped, kMessages);
}

}  // namespace
