// SPDX-License-Identifier: MIT
// A parallel downloader: so many at once, a deadline for all, and what is not there by then is cancelled and closed.
//
// Run: build/release/examples/32_http_download
// See: four pages of six: one is missing there, one comes too late.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "weft/http/client.h"
#include "weft/http/router.h"
#include "weft/http/server.h"
#include "weft/net/tcp.h"
#include "weft/sync/semaphore.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [download]
struct Page {
  std::string url;
  std::string outcome = "not in time";
};

Task<void> download(http::Client& client, Semaphore& turns, Page& page) {
  auto turn = co_await turns.acquire();
  Result<http::ClientResponse> response = co_await client.get(page.url);
  if (!response) {
    page.outcome = response.error().message();
    co_return;
  }
  Result<std::string> body = co_await response->body().read_all();
  page.outcome = std::to_string(response->status()) + ", " +
                 (body ? std::to_string(body->size()) + " bytes" : body.error().message());
}

// Returns when all are there, or the time is up: then nothing of it runs any more, and no connection is left open.
Task<void> download_all(std::vector<Page>& pages, std::size_t at_once,
                        std::chrono::milliseconds deadline) {
  http::ClientOptions options{.proxies = {}};
  http::Client client(options);
  Semaphore turns(at_once);
  auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (Page& page : pages) nursery.start(download(client, turns, page));
    co_return join;
  };
  co_await timeout(deadline, with_nursery(all));
}
// [/download]

// Something to download from.
void open_site(http::Router& site) {
  site.get("/pages/{size}",
           [](const http::Request& request, http::Response& response) -> Task<void> {
             response.body("text/plain", std::string(std::stoul(request.parameter("size")), 'x'));
             co_return;
           });
  site.get("/slow", [](const http::Request&, http::Response& response) -> Task<void> {
    Result<void> begun = co_await response.write("soon");
    if (begun) begun = co_await response.flush();
    co_await suspend_forever();
  });
}

Task<void> serve_and_download() {
  http::Router site;
  open_site(site);
  http::Limits limits{.drain_timeout = 0ms};
  http::Server server(site, {.limits = limits});
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  std::string at = "http://" + or_throw(listener.local_address()).to_string();
  auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(server.serve(listener));
    std::vector<Page> pages;
    for (const char* path :
         {"/pages/10", "/slow", "/pages/2000", "/none", "/pages/300000", "/pages/0"}) {
      pages.push_back({at + path});
    }
    co_await download_all(pages, 3, 500ms);
    for (const Page& page : pages) {
      std::printf("%-14s %s\n", page.url.substr(at.size()).c_str(), page.outcome.c_str());
    }
    co_return cancel;
  };
  co_await with_nursery(both);
}

int main() {
  EventLoop loop;
  run(loop, serve_and_download());
}
