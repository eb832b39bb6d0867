// SPDX-License-Identifier: MIT
// Channel against a model that is too simple to be wrong, for random programs on one loop. A failing
// program is shrunk and printed with its seed: RC_PARAMS="seed=…" runs it again.
#if __has_include(<rapidcheck.h>)
#include <rapidcheck.h>

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::VirtualLoop;

enum class Kind { send, send_all, receive, try_send, try_receive, cancel, settle, close };

struct Command {
  Kind kind;
  int number;  // of values to send, or of the operation to cancel
};
void showValue(const Command& command, std::ostream& out) {
  static const char* const names[] = {"send",        "send_all", "receive", "try_send",
                                      "try_receive", "cancel",   "settle",  "close"};
  out << names[static_cast<int>(command.kind)] << " " << command.number;
}

// What became of each operation: "waits" until it ends.
using Ends = std::vector<std::string>;

// Two queues of people and one of things.
class Model {
 public:
  explicit Model(std::size_t capacity) : capacity_(capacity) {}

  void send(std::vector<int> values, bool waits) {
    ends.push_back(closed_ ? "closed" : "waits");
    if (closed_) return;
    senders_.push_back({ends.size() - 1, {values.begin(), values.end()}});
    move_on();
    if (!waits && !senders_.empty() && senders_.back().who == ends.size() - 1) {
      senders_.pop_back();
      ends.back() = "full";
    }
  }
  void receive(bool waits) {
    ends.push_back("waits");
    receivers_.push_back(ends.size() - 1);
    move_on();
    if (receivers_.empty() || receivers_.back() != ends.size() - 1) return;
    if (closed_ || !waits) {
      receivers_.pop_back();
      ends.back() = closed_ ? "closed" : "empty";
    }
  }
  void cancel(std::size_t who) {
    if (ends[who] != "waits") return;
    ends[who] = "cancelled";
    std::erase_if(senders_, [&](const Sender& sender) { return sender.who == who; });
    std::erase(receivers_, who);
  }
  void close() {
    closed_ = true;
    for (const Sender& sender : senders_) ends[sender.who] = "closed";
    for (std::size_t who : receivers_) ends[who] = "closed";
    senders_.clear();
    receivers_.clear();
  }
  [[nodiscard]] std::size_t size() const { return items_.size(); }

  Ends ends;

 private:
  struct Sender {
    std::size_t who;
    std::deque<int> values;
  };

  // Until nothing moves: an item to a receiver, a sender's value to the items or, if there is no room
  // at all, to a receiver.
  void move_on() {
    for (;;) {
      if (!receivers_.empty() && !items_.empty()) {
        ends[receivers_.front()] = "got " + std::to_string(items_.front());
        receivers_.pop_front();
        items_.pop_front();
      } else if (!senders_.empty() && items_.size() < capacity_ + receivers_.size()) {
        Sender& first = senders_.front();
        items_.push_back(first.values.front());
        first.values.pop_front();
        if (!first.values.empty()) continue;
        ends[first.who] = "sent";
        senders_.pop_front();
      } else {
        return;
      }
    }
  }

  const std::size_t capacity_;
  bool closed_ = false;
  std::deque<int> items_;
  std::deque<Sender> senders_;
  std::deque<std::size_t> receivers_;
};

// The same operations on a Channel, as tasks.
class Subject {
 public:
  Subject(Channel<std::unique_ptr<int>>& channel, Scope& scope)
      : channel_(channel), scope_(scope) {}

  void send(std::vector<int> values, bool waits) {
    Operation& mine = add();
    for (int value : values) mine.values.push_back(std::make_unique<int>(value));
    mine.rest = mine.values;
    if (waits) {
      mine.task = sends(mine).start_immediate(scope_);
    } else {
      auto sent = channel_.try_send(std::move(mine.values.front()));
      if (sent) mine.rest = {};
      mine.end = sent ? "sent" : sent.error() == ChannelError::full ? "full" : "closed";
    }
  }
  void receive(bool waits) {
    Operation& mine = add();
    if (waits) {
      mine.task = receives(mine).start_immediate(scope_);
    } else {
      auto item = channel_.try_receive();
      mine.end = item                                  ? "got " + std::to_string(**item)
                 : item.error() == ChannelError::empty ? "empty"
                                                       : "closed";
    }
  }
  void cancel(std::size_t who) {
    Operation& its = *std::next(operations_.begin(), static_cast<std::ptrdiff_t>(who));
    if (its.task) its.task->cancel();
  }
  // What a sender was not relieved of is still with it.
  [[nodiscard]] bool has_lost_nothing() const {
    for (const Operation& each : operations_)
      for (const auto& value : each.rest)
        if (!value) return false;
    return true;
  }
  [[nodiscard]] Ends ends() const {
    Ends all;
    for (const Operation& each : operations_) all.push_back(each.end);
    return all;
  }

 private:
  struct Operation {
    std::vector<std::unique_ptr<int>> values;
    std::span<std::unique_ptr<int>> rest;
    std::optional<StartedTask<void>> task;
    std::string end = "waits";
  };
  Operation& add() { return operations_.emplace_back(); }

  Task<void> sends(Operation& mine) {
    OnExit cancelled([&] {
      if (mine.end == "waits") mine.end = "cancelled";
    });
    bool sent = false;
    if (mine.rest.size() == 1) {
      sent = co_await channel_.send(std::move(mine.rest.front()));
      if (sent) mine.rest = {};
    } else {
      sent = co_await channel_.send_all(mine.rest);
    }
    mine.end = sent ? "sent" : "closed";
  }
  Task<void> receives(Operation& mine) {
    OnExit cancelled([&] {
      if (mine.end == "waits") mine.end = "cancelled";
    });
    std::optional<std::unique_ptr<int>> item = co_await channel_.receive();
    mine.end = item ? "got " + std::to_string(**item) : "closed";
  }

  Channel<std::unique_ptr<int>>& channel_;
  Scope& scope_;
  std::list<Operation> operations_;
};

Task<void> compare(Channel<std::unique_ptr<int>>& channel, const std::vector<Command>& program,
                   int items = 0) {
  constexpr int kSettled = 4;  // turns until everyone who was woken has gone on
  Model model(channel.capacity());
  Subject subject(channel, co_await current_scope());
  int next = 0;
  auto values = [&](int count) {
    std::vector<int> fresh;
    for (int i = 0; i < count; ++i) fresh.push_back(next++);
    return fresh;
  };
  while (next < items) {
    std::vector<int> one = values(1);
    model.send(one, false);
    subject.send(one, false);
  }
  for (const Command& command : program) {
    switch (command.kind) {
      case Kind::send:
      case Kind::send_all:
      case Kind::try_send: {
        const bool waits = command.kind != Kind::try_send;
        std::vector<int> fresh =
            values(command.kind == Kind::send_all ? 2 + command.number % 4 : 1);
        model.send(fresh, waits);
        subject.send(fresh, waits);
        break;
      }
      case Kind::receive:
      case Kind::try_receive:
        model.receive(command.kind == Kind::receive);
        subject.receive(command.kind == Kind::receive);
        break;
      case Kind::cancel: {
        if (model.ends.empty()) break;
        const std::size_t who = static_cast<std::size_t>(command.number) % model.ends.size();
        model.cancel(who);
        subject.cancel(who);  // reaches those who were woken and have not gone on
        co_await yields(kSettled);
        break;
      }
      case Kind::settle:
        co_await yields(kSettled);
        RC_ASSERT(subject.ends() == model.ends);
        break;
      case Kind::close:
        if (command.number % 4 != 0) break;
        model.close();
        channel.close();
        break;
    }
    RC_ASSERT(channel.size() == model.size());
  }
  model.close();
  channel.close();
  co_await yields(kSettled);
  RC_ASSERT(subject.ends() == model.ends);
  RC_ASSERT(subject.has_lost_nothing());
}

rc::Gen<std::vector<Command>> programs() {
  const auto kinds =
      rc::gen::element(Kind::send, Kind::send_all, Kind::receive, Kind::receive, Kind::try_send,
                       Kind::try_receive, Kind::cancel, Kind::settle, Kind::close);
  return rc::gen::container<std::vector<Command>>(
      rc::gen::construct<Command>(kinds, rc::gen::inRange(0, 64)));
}

TEST(ChannelProperty, BehavesAsTwoQueuesOfPeopleAndOneOfThings) {
  EXPECT_TRUE(rc::check([] {
    const auto program = *programs();
    const auto capacity = *rc::gen::inRange<std::size_t>(0, 4);
    VirtualLoop loop;
    Channel<std::unique_ptr<int>> channel(capacity);
    run(loop, compare(channel, program));
  }));
}

TEST(ChannelProperty, AnUnboundedOneAtItsMaximumDoesToo) {
  EXPECT_TRUE(rc::check([] {
    const auto program = *programs();
    VirtualLoop loop;
    auto channel = Channel<std::unique_ptr<int>>::unbounded("property", 1);
    const auto room = *rc::gen::inRange(0, 4);
    run(loop, compare(channel, program, static_cast<int>(channel.capacity()) - room));
  }));
}

}  // namespace
#endif
