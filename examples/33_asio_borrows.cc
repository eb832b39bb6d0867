// SPDX-License-Identifier: MIT
// A program of Asio's, with callbacks, that borrows weft for one thing: asking several services at once, with a deadline for each and
// nothing left behind. Its io_context, its sockets and its callbacks stay as they are.
//
// Run: build/release/examples/33_asio_borrows
// See: the program's own clock ticks on while three services are asked; the one that does not answer is given up.
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/adapt/asio.h"
#include "weft/weft.h"
#ifdef WEFT_ASIO_STANDALONE
#include <asio.hpp>
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
#endif

using namespace weft;
using namespace std::chrono_literals;
using asio::buffer;
using asio::io_context;
using asio::ip::tcp;

// --- The program as it was: callbacks -----------------------------------------------------------------

// Answers every line with its name; the one without a name says nothing.
class Service {
 public:
  Service(io_context& context, std::string name)
      : acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        name_(std::move(name)) {
    accept();
  }
  [[nodiscard]] tcp::endpoint where() const { return acceptor_.local_endpoint(); }

 private:
  void accept() {
    acceptor_.async_accept([this](auto error, tcp::socket socket) {
      if (error) return;
      auto peer = std::make_shared<tcp::socket>(std::move(socket));
      auto line = std::make_shared<std::array<char, 100>>();
      peer->async_read_some(buffer(*line), [this, peer, line](auto failed, std::size_t) {
        if (failed || name_.empty()) return hold(peer);
        asio::async_write(*peer, buffer(name_), [peer](auto, std::size_t) {});
      });
      accept();
    });
  }
  void hold(std::shared_ptr<tcp::socket> peer) { silent_.push_back(std::move(peer)); }

  tcp::acceptor acceptor_;
  std::string name_;
  std::vector<std::shared_ptr<tcp::socket>> silent_;
};

class Ticker {
 public:
  explicit Ticker(io_context& context) : timer_(context) { tick(); }
  void stop() { timer_.cancel(); }
  [[nodiscard]] int ticks() const { return ticks_; }

 private:
  void tick() {
    timer_.expires_after(5ms);
    timer_.async_wait([this](auto error) {
      if (error) return;
      ++ticks_;
      tick();
    });
  }
  asio::steady_timer timer_;
  int ticks_ = 0;
};

// --- What is borrowed ---------------------------------------------------------------------------------

// [ask]
Task<std::string> ask(io_context& context, tcp::endpoint service) {
  tcp::socket socket(context);
  or_throw(co_await socket.async_connect(service, use_weft));
  or_throw(co_await async_write(socket, buffer("who?\n", 5), use_weft));
  std::array<char, 100> answer;
  std::size_t count = or_throw(co_await socket.async_read_some(buffer(answer), use_weft));
  co_return std::string(answer.data(), count);
}

// All at once. Who is silent costs its own time and nobody else's, and its socket is closed when this returns.
Task<std::vector<std::string>> ask_all(io_context& context, std::vector<tcp::endpoint> services) {
  auto in_time = [&context](tcp::endpoint service) -> Task<std::string> {
    auto answer = co_await timeout(300ms, ask(context, service));
    co_return answer ? *answer : "(silent)";
  };
  std::vector<Task<std::string>> questions;
  for (const tcp::endpoint& service : services) questions.push_back(in_time(service));
  co_return co_await all_of(std::move(questions));
}
// [/ask]

int main() {
  io_context context;
  Service weather(context, "weather"), silent(context, ""), news(context, "news");
  Ticker ticker(context);
  // The program's own handlers run meanwhile, in this very call.
  std::vector<tcp::endpoint> services{weather.where(), silent.where(), news.where()};
  std::vector<std::string> answers = run(context, ask_all(context, services));
  for (const std::string& answer : answers) std::printf("%s\n", answer.c_str());
  std::printf("the clock %s\n", ticker.ticks() >= 3 ? "ticked on" : "stood still");
  ticker.stop();
}
