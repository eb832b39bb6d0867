// SPDX-License-Identifier: MIT
#pragma once
// showcase::Chat: a room. Whoever is in it hears what everybody says, on whichever worker their connections live.
//
// A connection is two tasks in a nursery: one receives, and tells the Broadcast; one listens to the Broadcast, and sends.
// When the peer leaves, the first ends and takes the second along.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json.h"
#include "weft/http/request.h"
#include "weft/weft.h"
#include "weft/ws/connection.h"

namespace showcase {

class Chat {
 public:
  static constexpr std::size_t kNameBytesMax = 32;
  static constexpr std::size_t kTextBytesMax = 1000;
  static constexpr std::size_t kRememberedMax = 20;  // messages that a newcomer is told

  weft::Task<void> talk(weft::ws::Connection& socket, const weft::http::Request& request) {
    std::string name = shortened(request.query_value("name").value_or(""), kNameBytesMax);
    if (name.empty()) name = "somebody";
    Presence present(*this, name);
    // What is told from here on comes through the subscriber, what was told before from memory: nothing is missed, and
    // nothing is heard twice.
    auto [told, subscriber] = enter();
    for (const std::string& line : told) {
      weft::Result<void> sent = co_await socket.send(line);
      if (!sent) co_return;
    }
    present.announce();
    auto both = [&](weft::Nursery& nursery) -> weft::Task<weft::NurseryEnd> {
      auto relay = [&]() -> weft::Task<void> {
        while (auto next = co_await subscriber.receive()) {
          weft::Result<void> sent = co_await socket.send(*next->value);
          if (!sent) co_return;
        }
      };
      nursery.start(relay);
      for (;;) {
        weft::Result<weft::ws::Message> message = co_await socket.receive();
        if (!message) co_return weft::cancel;  // they have left, or the line is broken
        if (message->is_text() && !message->data.empty())
          say("message", name, shortened(message->data, kTextBytesMax));
      }
    };
    co_await weft::with_nursery(both);
  }

  [[nodiscard]] std::size_t people() const noexcept { return people_.load(); }

 private:
  class Presence {
   public:
    Presence(Chat& chat, const std::string& name) : chat_(chat), name_(name) { ++chat_.people_; }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
    ~Presence() {
      --chat_.people_;
      if (announced_) chat_.say("left", name_, "");
    }
    void announce() {
      announced_ = true;
      chat_.say("joined", name_, "");
    }

   private:
    Chat& chat_;
    const std::string& name_;
    bool announced_ = false;
  };

  // No longer than this, and not cut inside of a character.
  static std::string shortened(std::string text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return text;
    while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xc0) == 0x80)
      --bytes_max;
    text.resize(bytes_max);
    return text;
  }

  void say(std::string_view kind, std::string_view name, std::string_view text) {
    auto now = std::chrono::system_clock::now().time_since_epoch();
    JsonObject line;
    line.string("kind", kind).string("name", name).string("text", text);
    line.number("time", static_cast<std::uint64_t>(
                            std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
    line.number("people", people());
    std::lock_guard lock(mutex_);
    if (kind == "message") remembered_.push_back(line.text());
    if (remembered_.size() > kRememberedMax) remembered_.pop_front();
    static_cast<void>(said_.send(line.text()));
  }

  std::pair<std::vector<std::string>, weft::BroadcastSubscriber<std::string>> enter() {
    std::lock_guard lock(mutex_);
    return {std::vector<std::string>(remembered_.begin(), remembered_.end()), said_.subscribe()};
  }

  std::atomic<std::size_t> people_ = 0;
  std::mutex mutex_;  // held for a moment, and never across a wait
  std::deque<std::string> remembered_;
  weft::Broadcast<std::string> said_{256};
};

}  // namespace showcase
