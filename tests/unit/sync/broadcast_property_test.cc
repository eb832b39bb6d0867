// SPDX-License-Identifier: MIT
// Broadcast against a list of all that was ever sent, for random programs. A failing program is shrunk
// and printed with its seed: RC_PARAMS="seed=…" runs it again.
#if __has_include(<rapidcheck.h>)
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::VirtualLoop;

enum class Kind { send, subscribe, receive, wait, close };
struct Command {
  Kind kind;
  std::size_t who;
};
void showValue(const Command& command, std::ostream& out) {
  static const char* const names[] = {"send", "subscribe", "receive", "wait", "close"};
  out << names[static_cast<int>(command.kind)] << " " << command.who;
}

// "missed n, value", or "nothing".
std::string told(const std::optional<Broadcast<int>::Item>& item) {
  if (!item) return "nothing";
  return "missed " + std::to_string(item->missed) + ", " + std::to_string(*item->value);
}

class Model {
 public:
  explicit Model(std::size_t capacity) : capacity_(capacity) {}

  bool send() {
    if (!closed_) ++sent_;
    return !closed_;
  }
  void subscribe() { next_.push_back(sent_); }
  std::string receive(std::size_t who) {
    std::size_t& next = next_[who];
    if (next == sent_) return "nothing";
    const std::size_t first = next;
    while (sent_ - next > capacity_) ++next;
    const std::size_t value = next++;
    return "missed " + std::to_string(value - first) + ", " + std::to_string(value);
  }
  void close() { closed_ = true; }
  [[nodiscard]] bool would_wait(std::size_t who) const { return !closed_ && next_[who] == sent_; }
  [[nodiscard]] int next_value() const { return static_cast<int>(sent_); }

 private:
  const std::size_t capacity_;
  bool closed_ = false;
  std::size_t sent_ = 0;  // the values are their numbers
  std::vector<std::size_t> next_;
};

Task<void> compare(Broadcast<int>& broadcast, const std::vector<Command>& program) {
  Model model(broadcast.capacity());
  std::vector<BroadcastSubscriber<int>> subscribers;
  for (const Command& command : program) {
    if (subscribers.empty() || command.kind == Kind::subscribe) {
      subscribers.push_back(broadcast.subscribe());
      model.subscribe();
    }
    const std::size_t who = command.who % subscribers.size();
    switch (command.kind) {
      case Kind::send: {
        const int value = model.next_value();
        RC_ASSERT(broadcast.send(int(value)) == model.send());
        break;
      }
      case Kind::subscribe:
        break;
      case Kind::receive:
        RC_ASSERT(told(subscribers[who].try_receive()) == model.receive(who));
        break;
      case Kind::wait: {
        if (model.would_wait(who)) break;
        std::optional<Broadcast<int>::Item> item = co_await subscribers[who].receive();
        RC_ASSERT(told(item) == model.receive(who));
        break;
      }
      case Kind::close:
        if (command.who != 0) break;
        broadcast.close();
        model.close();
        break;
    }
  }
}

TEST(BroadcastProperty, EverySubscriberIsToldOfAllThatWasSentOrHowManyItMissed) {
  EXPECT_TRUE(rc::check([] {
    const auto kinds = rc::gen::element(Kind::send, Kind::send, Kind::send, Kind::subscribe,
                                        Kind::receive, Kind::wait, Kind::close);
    const auto program = *rc::gen::container<std::vector<Command>>(
        rc::gen::construct<Command>(kinds, rc::gen::inRange<std::size_t>(0, 16)));
    VirtualLoop loop;
    Broadcast<int> broadcast(*rc::gen::inRange<std::size_t>(1, 5));
    run(loop, compare(broadcast, program));
  }));
}

}  // namespace
#endif
