// SPDX-License-Identifier: MIT
#pragma once
// A Client whose connections are MemoryStreams, and scripts at their other ends.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/fetch.h"
#include "weft/http/client.h"
#include "weft/net/memory_stream.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace weft::test {

inline http::Url url(std::string_view text) { return or_throw(http::Url::parse(text)); }

// One connection as the server's script sees it.
class Peer {
 public:
  Peer(net::MemoryStream stream, std::size_t number)
      : number_(number), stream_(std::move(stream)) {}

  // Which connection this is, from 0.
  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] net::MemoryStream& stream() noexcept { return stream_; }
  // A request's head, and the bytes of its content-length; "" at the end.
  Task<std::string> read_request() {
    while (true) {
      std::size_t end = received_.find("\r\n\r\n");
      if (end != received_.npos) {
        std::size_t size = end + 4;
        std::size_t length = received_.find("content-length: ");
        if (length < end) size += std::stoul(received_.substr(length + 16));
        if (received_.size() >= size) {
          std::string request = received_.substr(0, size);
          received_.erase(0, size);
          co_return request;
        }
      }
      bool more = co_await read_more();
      if (!more) co_return "";
    }
  }
  // Whatever comes until the end, or until `last`.
  Task<std::string> read_until(std::string last = "") {
    while (last.empty() || !received_.ends_with(last)) {
      bool more = co_await read_more();
      if (!more) break;
    }
    co_return std::exchange(received_, {});
  }
  // It may have gone.
  Task<void> write(std::string bytes) {
    Result<void> written = co_await net::write_all(stream_, bytes);
    static_cast<void>(written);
  }
  void close() { stream_.close(); }

 private:
  Task<bool> read_more() {
    std::array<std::byte, 4096> buffer;
    Result<std::size_t> count = co_await stream_.read_some(buffer);
    if (!count || *count == 0) co_return false;
    received_.append(reinterpret_cast<const char*>(buffer.data()), *count);
    co_return true;
  }

  std::size_t number_;
  net::MemoryStream stream_;
  std::string received_;
};

// What the script does with each connection.
using Script = std::function<Task<void>(Peer&)>;

class ScriptedConnector final : public http::Connector {
 public:
  ScriptedConnector(Nursery& nursery, Script script, net::MemoryStreamOptions wire)
      : nursery_(nursery), script_(std::move(script)), wire_(wire) {}

  Task<Result<std::unique_ptr<http::Transport>>> connect(const http::Endpoint& where) override {
    asked.push_back(std::string(http::to_string(where.scheme)) + "://" + where.authority());
    auto [mine, theirs] = net::memory_streams(wire_);
    nursery_.start(play(std::move(theirs)));
    ++open;
    co_return std::make_unique<Counted>(std::move(mine), open);
  }
  Task<Result<std::unique_ptr<http::Transport>>> secure(std::unique_ptr<http::Transport> tunnel,
                                                        const http::Endpoint& where) override {
    secured.push_back(where.authority());
    co_return tunnel;
  }

  std::vector<std::string> asked, secured;
  int open = 0;

 private:
  // Knows whether the client closes what it opens.
  class Counted final : public http::Transport {
   public:
    Counted(net::MemoryStream stream, int& open) : inner_(std::move(stream)), open_(open) {}
    ~Counted() override { --open_; }
    Task<Result<PooledBytes>> read() override { return inner_.read(); }
    Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) override {
      return inner_.write_some(parts);
    }
    Task<Result<std::size_t>> send_file(Descriptor& file, http::FileRange range) override {
      return inner_.send_file(file, range);
    }
    Task<Result<void>> shutdown_write() override { return inner_.shutdown_write(); }
    void close() noexcept override { inner_.close(); }
    std::optional<net::Address> peer_address() const noexcept override { return std::nullopt; }
    bool is_encrypted() const noexcept override { return false; }

   private:
    http::StreamTransport<net::MemoryStream> inner_;
    int& open_;
  };
  Task<void> play(net::MemoryStream stream) {
    Peer peer(std::move(stream), played_++);
    co_await script_(peer);
  }

  Nursery& nursery_;
  Script script_;
  net::MemoryStreamOptions wire_;
  std::size_t played_ = 0;
};

struct ClientTalk {
  http::ClientOptions options{.proxies = {}};
  net::MemoryStreamOptions wire{};
  weft::testing::VirtualLoop loop{};

  // Runs body(client, connector), a coroutine, against the script, and looks whether all was closed.
  template <class Body>
  void operator()(Script script, Body body) {
    auto root = [&]() -> Task<void> {
      auto talk = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto connector = std::make_shared<ScriptedConnector>(nursery, script, wire);
        {
          http::ClientOptions with = options;
          with.connector = connector;
          http::Client client(with);
          co_await body(client, *connector);
        }
        EXPECT_EQ(connector->open, 0) << "a connection outlived the client";
        co_return cancel;
      };
      co_await with_nursery(talk);
    };
    run(loop, root());
    EXPECT_EQ(loop.strand_count(), 0u);
  }
};

// A script that answers every request with the same bytes.
inline Script always(std::string bytes) {
  return [bytes](Peer& peer) -> Task<void> {
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      co_await peer.write(bytes);
    }
  };
}

// A response.
inline const std::string kHello = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello.";

// Whether `line` is one of the head's.
inline bool has_line(std::string_view head, std::string_view line) {
  return head.find("\r\n" + std::string(line) + "\r\n") != head.npos;
}

// A streamed body: "onetwothree".
inline Task<Result<void>> three_pieces(http::BodyWriter& out) {
  for (std::string piece : {"one", "", "two", "three"}) {
    Result<void> written = co_await out.write(piece);
    if (!written) co_return written;
    co_await yield();
  }
  co_return {};
}

}  // namespace weft::test
