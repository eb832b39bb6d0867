// SPDX-License-Identifier: MIT
#pragma once
// showcase::Pulse: what the runtime says of itself, twice a second, as JSON; whoever watches gets the same text.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "chat.h"
#include "json.h"
#include "looms.h"
#include "weft/http/event_stream.h"
#include "weft/http/handler.h"
#include "weft/weft.h"

namespace showcase {

class Pulse {
 public:
  Pulse(weft::IOContext& context, Chat& chat, Looms& looms)
      : context_(context), chat_(chat), looms_(looms) {}

  void count_request() noexcept { ++requests_; }
  [[nodiscard]] std::string latest() const { return *latest_.get(); }

  // Until it is cancelled.
  weft::Task<void> run() {
    weft::Interval every(std::chrono::milliseconds(500), weft::MissedTicks::skip);
    do {
      std::string now = co_await measure();
      latest_.set(std::move(now));
    } while (co_await every.tick());
  }

  // A handler: every pulse as a server-sent event, until the peer leaves or the server stops.
  weft::Task<void> stream(const weft::http::Request& request, weft::http::Response& response,
                          weft::http::Connection& connection) {
    auto send_all = [this](weft::http::EventStream& events) -> weft::Task<void> {
      for (auto seen = latest_.get();; seen = co_await latest_.until_changed(seen)) {
        weft::http::EventMessage pulse{.event = "pulse", .data = *seen};
        weft::Result<void> sent = co_await events.send(pulse);
        if (!sent) co_return;
      }
    };
    co_await weft::http::serve_events(request, response, connection, send_all);
  }

 private:
  weft::Task<std::string> measure() {
    std::vector<weft::IOContext::WorkerStatistics> workers = co_await context_.statistics();
    JsonList list;
    for (const weft::IOContext::WorkerStatistics& worker : workers) {
      JsonObject one;
      one.number("tasks", worker.loop.tasks).number("timers", worker.loop.timers);
      one.number("operations", worker.loop.operations);
      one.number("descriptors", worker.loop.descriptors).number("turns", worker.loop.turns);
      one.number("resumed", worker.loop.entries).number("sleeps", worker.loop.sleeps);
      one.number("wakeups", worker.loop.wakeups).number("frames", worker.frames.slab_bytes);
      list.add(one.text());
    }
    auto uptime = std::chrono::steady_clock::now() - begin_;
    JsonObject all;
    all.string("driver", to_string(context_.loop(0).driver()));
    all.number("uptime_ms",
               static_cast<std::uint64_t>(
                   std::chrono::duration_cast<std::chrono::milliseconds>(uptime).count()));
    all.number("requests", requests_.load()).number("people", chat_.people());
    all.number("looms_max", Looms::kLoomsMax);
    all.raw("looms", looms_.json()).raw("workers", list.text());
    co_return all.text();
  }

  weft::IOContext& context_;
  Chat& chat_;
  Looms& looms_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> requests_ = 0;
  weft::Watch<std::string> latest_{"{}", "pulse"};
};

}  // namespace showcase
