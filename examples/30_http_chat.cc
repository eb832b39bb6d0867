// SPDX-License-Identifier: MIT
// A chat room over WebSocket: what one says is heard by all. A listener who does not keep up is left out, and never holds up the others.
//
// Run: build/release/examples/30_http_chat
// See: Ada and Bob talk; Bob leaves, and Ada is told.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/tcp.h"
#include "weft/weft.h"
#include "weft/ws/client.h"
#include "weft/ws/endpoint.h"
#include "weft/ws/handler.h"

using namespace weft;

// [room]
// One object for all connections of a loop: no lock, because nothing here runs between two co_awaits but this.
class Room final : public ws::Handler {
 public:
  Task<void> on_open(ws::Connection& guest, const http::Request& request) override {
    guests_.push_back({&guest, request.parameter("name")});
    tell_all(guests_.back().name + " is here");
    co_return;
  }
  Task<void> on_message(ws::Connection& guest, ws::Message message) override {
    tell_all(find(guest)->name + ": " + message.data);
    co_return;
  }
  Task<void> on_close(ws::Connection& guest, ws::CloseCode, std::string_view) override {
    auto gone = find(guest);
    std::string name = gone->name;
    guests_.erase(gone);
    tell_all(name + " has left");
    co_return;
  }

 private:
  struct Guest {
    ws::Connection* connection;
    std::string name;
  };

  std::vector<Guest>::iterator find(const ws::Connection& guest) {
    return std::ranges::find(guests_, &guest, &Guest::connection);
  }
  void tell_all(std::string line) {
    ws::Message message(ws::Kind::text, std::move(line));
    for (Guest& guest : guests_) {
      bool heard = guest.connection->try_send(message);  // false: its queue is full
      static_cast<void>(heard);
    }
  }

  std::vector<Guest> guests_;
};
// [/room]

// What each has heard. (On the wire the two are not in step.)
struct Notes {
  std::string who;
  std::vector<std::string> lines;
};
// Takes down what is heard, until `last`.
Task<void> listen(ws::Connection& room, Notes& notes, std::string last) {
  do {
    Result<ws::Message> message = co_await room.receive();
    notes.lines.push_back(or_throw(std::move(message)).data);
  } while (notes.lines.back() != last);
}
Task<void> say(ws::Connection& room, std::string_view line) {
  Result<void> sent = co_await room.send(line);
  or_throw(sent);
}

// [guest]
Task<void> enter(net::Address where, std::string name, ws::ClientTalk talk) {
  net::TcpStream stream = or_throw(co_await net::TcpStream::connect(where));
  Result<ws::Close> end =
      co_await ws::connect(std::move(stream), "localhost", "/rooms/" + name, talk);
  if (or_throw(std::move(end)).code != ws::close_codes::normal) std::puts("cut off");
}
// [/guest]

Task<void> meet(net::Address where) {
  Event bob_is_expected;
  Notes ada_heard{"Ada", {}}, bob_heard{"Bob", {}};
  auto ada = [&](ws::Connection& room) -> Task<void> {
    co_await listen(room, ada_heard, "Ada is here");
    bob_is_expected.set();
    co_await listen(room, ada_heard, "Bob is here");
    co_await say(room, "hello, Bob");
    co_await listen(room, ada_heard, "Bob has left");
  };
  auto bob = [&](ws::Connection& room) -> Task<void> {
    co_await listen(room, bob_heard, "Ada: hello, Bob");
    co_await say(room, "hello, and goodbye");
    co_await listen(room, bob_heard, "Bob: hello, and goodbye");
  };
  auto later = [&]() -> Task<void> {
    co_await bob_is_expected.wait();
    co_await enter(where, "Bob", bob);
  };
  co_await all_of(enter(where, "Ada", ada), later());
  for (const Notes& notes : {ada_heard, bob_heard}) {
    for (const std::string& line : notes.lines) {
      std::printf("%s heard: %s\n", notes.who.c_str(), line.c_str());
    }
  }
}

Task<void> run_room() {
  Room room;
  ws::Endpoint endpoint(room);
  http::Router routes;
  routes.get("/rooms/{name}", endpoint);
  http::Server server(routes);
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::Address where = or_throw(listener.local_address());
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(server.serve(listener));
    co_await meet(where);
    co_return cancel;
  };
  co_await with_nursery(both);
}

int main() {
  EventLoop loop;
  run(loop, run_room());
}
