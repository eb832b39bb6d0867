// SPDX-License-Identifier: MIT
// A small service to look at while it runs, in a browser: static files, JSON, a WebSocket chat, server-sent events, and the
// tree of all its tasks.
//
// Run: script/demo, or build/release/examples/showcase [DIRECTORY [PORT]]
// See: the page at the URL that it prints. kill -USR1 <pid> prints the tree here; Ctrl-C ends it, and every task is gone
//      before main() returns.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "chat.h"
#include "looms.h"
#include "pulse.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/http/static_files.h"
#include "weft/weft.h"
#include "weft/ws/endpoint.h"

using namespace weft;

class Showcase {
 public:
  Showcase(IOContext& context, http::StaticFiles files)
      : context_(context), files_(std::move(files)) {
    // [routes]
    auto guard = [this](const http::Request&, http::Response& response,
                        http::Next next) -> Task<void> {
      pulse_.count_request();
      response.header("content-security-policy", "default-src 'self'; frame-ancestors 'none'");
      response.header("x-content-type-options", "nosniff");
      co_await next();
    };
    auto status = [this](const http::Request&, http::Response& response) -> Task<void> {
      response.header("cache-control", "no-store");
      response.body("application/json", pulse_.latest() + "\n");
      co_return;
    };
    auto events = [this](const http::Request& request, http::Response& response,
                         http::Connection& connection) -> Task<void> {
      return pulse_.stream(request, response, connection);
    };
    auto tree = [this](const http::Request&, http::Response& response) -> Task<void> {
      std::string text = co_await draw_tree();
      response.header("cache-control", "no-store");
      response.body("text/plain; charset=utf-8", std::move(text));
    };
    auto add_loom = [this](const http::Request&, http::Response& response) -> Task<void> {
      response.status(looms_.add() ? 201 : 409);
      co_return;
    };
    auto stop_loom = [this](const http::Request& request, http::Response& response) -> Task<void> {
      unsigned number = static_cast<unsigned>(std::atoi(request.parameter("number").c_str()));
      response.status(looms_.stop(number) ? 204 : 404);
      co_return;
    };
    routes_.use(guard);
    routes_.get("/status", status);
    routes_.get("/events", events);
    routes_.get("/tree", tree);
    routes_.post("/looms", add_loom);
    routes_.del("/looms/{number}", stop_loom);
    routes_.get("/chat", chat_endpoint_);
    routes_.get("/{path...}", files_);
    // [/routes]
  }

  // On every worker, with a listener for each.
  Task<void> run(std::vector<net::TcpListener> listeners) {
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (std::size_t i = 0; i < listeners.size(); ++i) {
        auto work = [this, i, &listener = listeners[i]] { return work_on(i, listener); };
        nursery.start_on(context_.loop(i), work);
      }
      co_return join;
    };
    co_await with_nursery(body);
  }

 private:
  // Everything that happens on one worker is below one nursery.
  Task<void> work_on(std::size_t worker, net::TcpListener& listener) {
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      floors_[worker] = &nursery;
      nursery.start(looms_.run(worker));
      if (worker == 0) {
        nursery.start(pulse_.run());
        nursery.start(print_tree_on_signal());
      }
      auto serve = [&]() -> Task<void> {
        http::Server server(routes_, {.limits = share_of(http::Limits(), context_.workers())});
        co_await server.serve(listener);
      };
      nursery.start(serve);
      co_return join;
    };
    struct Leaves {
      explicit Leaves(Nursery*& of) : floor(of) {}
      ~Leaves() { floor = nullptr; }
      Nursery*& floor;
    } leaves(floors_[worker]);
    co_await with_nursery(body);
  }

  // [tree]
  // Each worker draws its own, on its own loop.
  Task<std::string> draw_tree() {
    std::string text;
    for (std::size_t i = 0; i < floors_.size(); ++i) {
      auto draw = [this, i]() -> Task<std::string> {
        co_return floors_[i] ? task_tree(*floors_[i]) : "it has left\n";
      };
      text += "worker " + std::to_string(i) + "\n";
      text += co_await on(context_.loop(i), draw());
    }
    co_return text;
  }
  // [/tree]

  Task<void> print_tree_on_signal() {
    SignalSet signals({SIGUSR1});
    std::printf("process %d: kill -USR1 %d prints the tree of tasks, Ctrl-C ends it\n", ::getpid(),
                ::getpid());
    for (;;) {
      static_cast<void>(co_await signals.next());
      std::string tree = co_await draw_tree();
      std::printf("%sthat is all of them\n", tree.c_str());
    }
  }

  IOContext& context_;
  http::StaticFiles files_;
  showcase::Chat chat_;
  showcase::Looms looms_{context_.workers()};
  showcase::Pulse pulse_{context_, chat_, looms_};
  ws::Endpoint chat_endpoint_{
      [this](ws::Connection& socket, const http::Request& request) -> Task<void> {
        return chat_.talk(socket, request);
      },
      {.limits = {.message_bytes_max = 4096, .frame_bytes_max = 4096},
       .deflate = ws::DeflateOptions()}};
  http::Router routes_;
  std::vector<Nursery*> floors_{context_.workers()};  // each is its own worker's to touch
};

// One for each worker: at this port, or, if it is taken, at any that is free.
std::vector<net::TcpListener> listen_at(std::uint16_t port, std::size_t workers) {
  Result<net::TcpListener> alone = net::TcpListener::listen(net::Address::loopback_v4(port));
  if (!alone && alone.error() == std::errc::address_in_use)
    alone = net::TcpListener::listen(net::Address::loopback_v4(0));
  net::Address where = or_throw(or_throw(std::move(alone)).local_address());
  std::vector<net::TcpListener> listeners;
  for (std::size_t i = 0; i < workers; ++i)
    listeners.push_back(or_throw(net::TcpListener::listen(where, {.reuse_port = true})));
  return listeners;
}

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const char* directory = argc > 1 ? argv[1] : "examples/showcase/public";
  Result<http::StaticFiles> files = http::StaticFiles::open(directory);
  if (!files) {
    std::fprintf(stderr, "showcase: %s: %s: name the directory of its pages\n", directory,
                 files.error().message().c_str());
    return 1;
  }
  IOContext context({.workers = 2});
  auto port = static_cast<std::uint16_t>(argc > 2 ? std::atoi(argv[2]) : 8080);
  std::vector<net::TcpListener> listeners = listen_at(port, context.workers());
  net::Address where = or_throw(listeners.front().local_address());
  Showcase showcase(context, std::move(*files));
  std::printf("the showcase is at http://%s/\n", where.to_string().c_str());
  context.run(
      showcase.run(std::move(listeners)));  // SIGINT and SIGTERM stop the context by themselves
  std::printf("every task has ended\n");
}
