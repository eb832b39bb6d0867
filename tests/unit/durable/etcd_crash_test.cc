// SPDX-License-Identifier: MIT
// A process that dies by SIGKILL after each of its requests to etcd: it was carried out, and nobody heard of it. Afterwards nobody has the lock
// together with what it still had, no grant is lost, no token comes twice, no lease is shorter.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "durable/etcd/etcd_store.h"
#include "durable/etcd/http_transport.h"
#include "support/etcd.h"
#include "support/mortal.h"
#include "support/temporary_directory.h"
#include "support/this_test.h"
#include "weft/run/process.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;

// Dies when the n-th answer has come. A store makes several requests of one call: for a lease, for the ticket, for who stands there.
class DyingTransport final : public durable::etcd::Transport {
 public:
  DyingTransport(const durable::EtcdOptions& options, int n) : inner_(options), left_(n) {}
  Task<Result<durable::etcd::Answer>> call(std::size_t member,
                                           durable::etcd::Question question) override {
    Result<durable::etcd::Answer> answer = co_await inner_.call(member, std::move(question));
    if (--left_ == 0) ::kill(::getpid(), SIGKILL);
    co_return answer;
  }
  Task<Result<std::unique_ptr<durable::etcd::AnswerStream>>> stream(
      std::size_t member, durable::etcd::Question question) override {
    return inner_.stream(member, std::move(question));
  }

 private:
  durable::etcd::HttpTransport inner_;
  int left_;
};

struct EtcdCrash : ::testing::Test {
  static constexpr std::chrono::milliseconds kLease{1'000};  // etcd has no shorter one
  static constexpr int kAtOnce = 8;
  static constexpr int kRequestsMax = 200;

  static Task<void> live(std::string role) {
    std::istringstream words(role);
    Mortal::Life life{"", "", kLease};
    int n = 0;
    words >> life.url >> life.history >> n;
    durable::EtcdOptions options = or_throw(durable::parse_etcd_url(life.url));
    auto transport = std::make_unique<DyingTransport>(options, n);
    auto store = std::make_unique<durable::EtcdStore>(std::move(options), std::move(transport));
    DyingStore::Death never{"nothing"};
    Mortal mortal(life, std::move(store), never);
    co_await mortal.run();
  }
  Task<void> die_and_come_after(int n) {
    Mortal::Life life{shared_etcd().url(fresh_prefix()),
                      directory.file("request" + std::to_string(n)), kLease};
    Process process = or_throw(
        Process::spawn(this_test_as(life.url + " " + life.history + " " + std::to_string(n))));
    ExitStatus ended = or_throw(co_await process.wait());
    if (ended == ExitStatus::exited(Mortal::kLived)) {
      lived = true;
    } else {
      EXPECT_EQ(ended, ExitStatus::killed(SIGKILL)) << life.history << ": " << ended.text();
      ++deaths;
    }
    co_await come_after(life);
  }

  TemporaryDirectory directory;
  int deaths = 0;
  bool lived = false;  // it made fewer requests than that
};

TEST_F(EtcdCrash, AfterEveryRequestBeforeItsAnswerIsHeard) {
  EventLoop loop;
  if (const char* role = role_of_this_process()) return run(loop, live(role));
  for (int first = 1; !lived && first < kRequestsMax; first += kAtOnce) {
    auto some = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int n = first; n < first + kAtOnce; ++n) nursery.start(die_and_come_after(n));
      co_return join;
    };
    run(loop, with_nursery(some));
  }
  EXPECT_TRUE(lived);
  // The version, join, enqueue, renew, release, retire, join and enqueue again, withdraw, revoke: one of each at the least.
  EXPECT_GE(deaths, 10);
}

}  // namespace
