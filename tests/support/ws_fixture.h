// SPDX-License-Identifier: MIT
#pragma once
// Frames by hand, so that ours are measured by something else than themselves; and the two ends of a connection.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/http_fixture.h"
#include "weft/testing/virtual_loop.h"
#include "weft/time/sleep.h"
#include "weft/ws/client.h"
#include "weft/ws/endpoint.h"
#include "weft/ws/error.h"

namespace weft::test {

// --- Frames -----------------------------------------------------------------------------------------

struct Frame {
  int opcode = 1;
  std::string payload{};
  bool fin = true;
  int rsv = 0;  // RSV1 is 4
  bool masked = true;
  int length_bytes = -1;  // 0, 2 or 8; -1: the shortest
};

inline std::string to_bytes(const Frame& frame) {
  std::string bytes;
  bytes += static_cast<char>((frame.fin ? 0x80 : 0) | frame.rsv << 4 | frame.opcode);
  std::uint64_t size = frame.payload.size();
  int more = frame.length_bytes;
  if (more < 0) more = size < 126 ? 0 : size < 65536 ? 2 : 8;
  std::uint64_t code = more == 0 ? size : more == 2 ? 126 : 127;
  bytes += static_cast<char>((frame.masked ? 0x80u : 0u) | code);
  for (int i = more - 1; i >= 0; --i) bytes += static_cast<char>(size >> (8 * i));
  if (!frame.masked) return bytes + frame.payload;
  const char mask[] = {'\x37', '\xfa', '\x21', '\x3d'};
  bytes.append(mask, 4);
  for (std::size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(frame.payload[i] ^ mask[i % 4]);
  }
  return bytes;
}

inline std::string text_frame(std::string payload) {
  Frame frame;
  frame.payload = std::move(payload);
  return to_bytes(frame);
}
inline std::string control_frame(int opcode, std::string payload) {
  Frame frame;
  frame.opcode = opcode;
  frame.payload = std::move(payload);
  return to_bytes(frame);
}
inline std::string close_payload(int code, std::string_view reason = "") {
  std::string payload;
  payload += static_cast<char>(code >> 8);
  payload += static_cast<char>(code & 0xff);
  return payload.append(reason);
}
inline std::string close_frame(int code, std::string_view reason = "") {
  return control_frame(8, close_payload(code, reason));
}

// The next frame of `bytes`, taken off it. Returns: false if it is not whole.
inline bool take_frame(std::string_view& bytes, Frame& frame) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < 2) return false;
  std::size_t more = (byte(1) & 0x7f) == 126 ? 2 : (byte(1) & 0x7f) == 127 ? 8 : 0;
  bool masked = (byte(1) & 0x80) != 0;
  std::size_t head = 2 + more + (masked ? 4 : 0);
  if (bytes.size() < head) return false;
  std::uint64_t size = more == 0 ? byte(1) & 0x7fu : 0;
  for (std::size_t i = 0; i < more; ++i) size = size << 8 | byte(2 + i);
  if (bytes.size() - head < size) return false;
  frame.fin = (byte(0) & 0x80) != 0;
  frame.rsv = byte(0) >> 4 & 7;
  frame.opcode = byte(0) & 15;
  frame.masked = masked;
  frame.length_bytes = static_cast<int>(more);
  frame.payload = bytes.substr(head, size);
  for (std::size_t i = 0; masked && i < size; ++i) {
    frame.payload[i] = static_cast<char>(frame.payload[i] ^ bytes[head - 4 + i % 4]);
  }
  bytes.remove_prefix(head + size);
  return true;
}

inline std::vector<Frame> parse_frames(std::string_view bytes) {
  std::vector<Frame> frames;
  Frame frame;
  while (take_frame(bytes, frame)) frames.push_back(frame);
  EXPECT_TRUE(bytes.empty()) << "half a frame at the end: " << bytes.size() << " bytes";
  return frames;
}

// "T:hello B:… P:pong C:1000,reason", the messages first: a pong may overtake them.
inline std::string transcript(std::string_view bytes) {
  std::string data, pongs, close;
  for (const Frame& frame : parse_frames(bytes)) {
    EXPECT_FALSE(frame.masked) << "a server does not mask";
    EXPECT_TRUE(close.empty()) << "a frame behind the Close";
    if (frame.opcode == 8) {
      close = "C:";
      if (frame.payload.size() >= 2) {
        close += std::to_string(static_cast<unsigned char>(frame.payload[0]) << 8 |
                                static_cast<unsigned char>(frame.payload[1]));
      }
    } else if (frame.opcode == 10) {
      pongs += "P:" + frame.payload + " ";
    } else {
      data += frame.opcode == 1 ? "T:" : frame.opcode == 2 ? "B:" : "";
      data += frame.payload;
      if (frame.fin) data += " ";
    }
  }
  return data + pongs + close;
}

// --- A server, and bytes for it ---------------------------------------------------------------------

inline const std::string kKey = "dGhlIHNhbXBsZSBub25jZQ==";  // RFC 6455, 1.3
inline std::string handshake(std::string_view more = "", std::string_view path = "/") {
  std::string request("GET ");
  request.append(path).append(" HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\n");
  request.append("Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
  request.append(kKey).append("\r\n").append(more).append("\r\n");
  return request;
}

inline Task<void> echo(ws::Connection& socket, const http::Request&) {
  while (true) {
    Result<ws::Message> message = co_await socket.receive();
    if (!message) co_return;
    Result<void> sent = co_await socket.send(*message);
    if (!sent) co_return;
  }
}

// Sends the first `at` bytes, and the others when everybody has come to rest: on a VirtualLoop time passes only then. Says that there
// will be no more, and returns all that came back.
inline Task<std::string> ask_in_two(net::MemoryStream& stream, std::string bytes, std::size_t at) {
  std::string answer;
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto send = [&]() -> Task<void> {
      std::string_view first = std::string_view(bytes).substr(0, at);
      std::string_view second = std::string_view(bytes).substr(at);
      Result<void> sent = co_await net::write_all(stream, first);
      co_await sleep_for(std::chrono::milliseconds(1));
      if (sent) sent = co_await net::write_all(stream, second);
      if (sent) sent = co_await stream.shutdown_write();
    };
    nursery.start(send);
    answer = co_await read_to_end(stream);
    co_return join;
  };
  co_await with_nursery(both);
  co_return answer;
}

// What an Endpoint answers to frames, behind its 101.
struct FrameTalk {
  ws::EndpointOptions options{};
  net::MemoryStreamOptions wire{};
  std::string fields{};  // of the request

  std::string operator()(std::string_view frames) const {
    ws::Endpoint endpoint(echo, options);
    Talk talk;
    talk.wire = wire;
    return behind_head(talk(endpoint, handshake(fields).append(frames)));
  }

  // The same, torn in two at `at`, in the handshake or the frames.
  [[nodiscard]] std::string torn(std::string_view frames, std::size_t at) const {
    std::string answer;
    ws::Endpoint endpoint(echo, options);
    testing::VirtualLoop loop;
    http::Server server(endpoint);
    auto talk = [&]() -> Task<void> {
      auto [near, far] = net::memory_streams(wire);
      net::MemoryStream mine = std::move(near);
      http::StreamTransport transport(std::move(far));
      auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
      auto question = [&]() -> Task<void> {
        answer = co_await ask_in_two(mine, handshake(fields).append(frames), at);
      };
      co_await all_of(serve(), question());
    };
    run(loop, talk());
    EXPECT_EQ(server.connections(), 0u);
    return behind_head(answer);
  }

 private:
  static std::string behind_head(const std::string& answer) {
    std::size_t head = answer.find("\r\n\r\n");
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 101") << answer;
    return head == answer.npos ? "" : answer.substr(head + 4);
  }
};

// --- Both ends --------------------------------------------------------------------------------------

// A client of ours and a server of ours, over memory.
template <class Loop>
Result<ws::Close> converse(Loop& loop, http::Handler& handler, ws::ClientTalk talk,
                           ws::ClientOptions options = {}, net::MemoryStreamOptions wire = {},
                           std::string path = "/") {
  http::Server server(handler);
  Result<ws::Close> end = std::unexpected(std::error_code());
  auto both = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams(wire);
    net::MemoryStream mine = std::move(near);
    http::StreamTransport transport(std::move(far));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto ask = [&]() -> Task<void> {
      Task<Result<ws::Close>> talking =
          ws::connect(std::move(mine), "example.org", path, talk, options);
      end = co_await std::move(talking);
    };
    co_await all_of(serve(), ask());
  };
  run(loop, both());
  EXPECT_EQ(server.connections(), 0u);
  return end;
}

}  // namespace weft::test
