// SPDX-License-Identifier: MIT
// An actor: one task owns an account, and everybody else talks to it by mail.
//
// Run: build/release/examples/25_mailbox
// See: requests and replies; a request that was given up and is not carried out; a graceful stop,
//      which serves what is in the mailbox; a cancel, after which whoever waits is told.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [actor]
class Account {
 public:
  // The actor. It ends when it is stopped and has no mail left, or when it is cancelled.
  Task<> run() {
    Abandons rest(mailbox_);
    auto serve = [this](auto& request) { return this->serve(request); };
    while (auto letter = co_await mailbox_.receive()) co_await std::visit(serve, *letter);
  }
  // No more mail. What is in the box is served.
  void stop() { mailbox_.close(); }

  // The balance afterwards. Nothing: the account is closed.
  Task<std::optional<int>> deposit(int amount) { return ask<Deposit>(amount); }
  Task<std::optional<int>> balance() { return deposit(0); }
  // Whether there was enough.
  Task<std::optional<bool>> withdraw(int amount) { return ask<Withdraw>(amount); }

 private:
  struct Deposit {
    using Reply = int;
    int amount;
    OneshotSender<int> reply;
  };
  struct Withdraw {
    using Reply = bool;
    int amount;
    OneshotSender<bool> reply;
  };
  using Letter = std::variant<Deposit, Withdraw>;
  using Mailbox = Channel<Letter>;

  // A request is a letter with a stamped envelope in it; waiting for the answer is all there is to
  // it. Whoever is cancelled meanwhile drops his end, and the actor can see that.
  template <class Request>
  Task<std::optional<typename Request::Reply>> ask(int amount) {
    auto [reply, answer] = oneshot<typename Request::Reply>();
    Letter letter = Request{amount, std::move(reply)};
    if (!co_await mailbox_.send(std::move(letter))) co_return std::nullopt;
    co_return co_await answer.receive();
  }

  // One at a time, to the end: nothing here needs a lock, although it waits.
  Task<> serve(Deposit& request) {
    co_await sleep_for(1ms);
    balance_ += request.amount;
    request.reply.send(int(balance_));
  }
  Task<> serve(Withdraw& request) {
    co_await sleep_for(1ms);
    if (request.reply.is_abandoned()) co_return;  // nobody would know that he has the money
    bool enough = balance_ >= request.amount;
    if (enough) balance_ -= request.amount;
    request.reply.send(bool(enough));
  }

  // However the actor ends, mail that it leaves behind is thrown away: its senders are told.
  class Abandons {
   public:
    explicit Abandons(Mailbox& mailbox) : mailbox_(mailbox) {}
    ~Abandons() {
      mailbox_.close();
      while (mailbox_.try_receive()) {
      }
    }

   private:
    Mailbox& mailbox_;
  };

  static constexpr std::size_t kMailMax = 16;  // then senders wait
  Mailbox mailbox_{kMailMax, "account"};
  int balance_ = 0;
};
// [/actor]

void show(const char* what, std::optional<int> balance) {
  std::printf("%s: %s\n", what, balance ? std::to_string(*balance).c_str() : "closed");
}
void show(const char* what, std::optional<bool> enough) {
  std::printf("%s: %s\n", what, !enough ? "closed" : *enough ? "here you are" : "not enough");
}

// [use]
Task<> graceful() {
  Account account;
  auto business = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(account.run());
    show("deposit 100", co_await account.deposit(100));
    show("withdraw 30", co_await account.withdraw(30));
    show("withdraw 99", co_await account.withdraw(99));

    auto in_time = co_await timeout(500us, account.withdraw(50));
    std::printf("withdraw 50: %s\n", in_time ? "in time" : "given up");
    show("balance", co_await account.balance());

    auto last = [&]() -> Task<> { show("last deposit", co_await account.deposit(5)); };
    n.start(last());
    co_await yield();  // it is in the mailbox
    account.stop();
    show("too late", co_await account.deposit(1));
    co_return join;
  };
  co_await with_nursery(business);
}

Task<> cancelled() {
  Account account;
  auto customers = [&](Nursery& n) -> Task<NurseryEnd> {
    for (int i = 0; i < 2; ++i) {
      auto customer = [&]() -> Task<> { show("deposit", co_await account.deposit(1)); };
      n.start(customer);
    }
    auto in_time = co_await timeout(1500us, account.run());
    std::printf("the actor was %s\n", in_time ? "stopped" : "cancelled");
    co_return join;
  };
  co_await with_nursery(customers);
}
// [/use]

Task<> async_main() {
  co_await graceful();
  co_await cancelled();
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
