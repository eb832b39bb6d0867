// SPDX-License-Identifier: MIT
// The leases of a session: which one serves the next ticket, and when it must begin anew for that. Against an etcd that is a script.
#include "durable/etcd/etcd_leases.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace weft::durable::etcd {
namespace {

using namespace std::chrono_literals;

// Grants what it is asked for, and keeps it alive.
class Generous final : public Transport {
 public:
  explicit Generous(std::vector<std::string>& asked) : asked_(asked) {}
  Task<Result<Answer>> call(std::size_t, Question question) override {
    asked_.push_back(question.path);
    Answer answer;
    answer.status = 200;
    answer.json =
        question.path == "/v3/lease/grant" ? R"({"TTL":"15"})" : R"({"result":{"TTL":"15"}})";
    co_return answer;
  }
  Task<Result<std::unique_ptr<AnswerStream>>> stream(std::size_t, Question) override {
    co_return std::unexpected(std::make_error_code(std::errc::connection_refused));
  }

 private:
  std::vector<std::string>& asked_;
};

EtcdOptions one_member() {
  EtcdOptions options;
  http::Endpoint endpoint;
  endpoint.host = "member";
  options.endpoints.push_back(endpoint);
  return options;
}

struct EtcdLeases : ::testing::Test {
  LeaseId obtain() {
    auto root = [&]() -> Task<LeaseId> {
      Outcome<LeaseId> lease = co_await leases.obtain(kLength, now() + 1s);
      EXPECT_TRUE(lease);
      co_return lease ? *lease : 0;
    };
    return run(loop_, root());
  }
  bool keep_alive(LeaseId lease) {
    auto root = [&]() -> Task<bool> {
      Outcome<bool> alive = co_await leases.keep_alive(lease, now() + 1s);
      co_return alive && *alive;
    };
    return run(loop_, root());
  }
  // The machine sleeps: no timer runs, no loop's clock goes on. etcd, and with it the lease, does.
  void suspend(std::chrono::nanoseconds time) { clock += time.count(); }

  static constexpr std::chrono::milliseconds kLength{14'200};  // of which etcd makes 15 s
  std::vector<std::string> asked;
  std::int64_t clock = 0;

 private:
  testing::VirtualLoop loop_;
  EtcdOptions options_ = one_member();
  Client client_{options_, std::make_unique<Generous>(asked)};

 public:
  Leases leases{client_, [this] { return clock; }};
};

TEST_F(EtcdLeases, ServesTheNextTicketOfItsLength) {
  LeaseId first = obtain();
  leases.spare(first);
  EXPECT_EQ(obtain(), first);
  EXPECT_NE(obtain(), first) << "it is taken";
  EXPECT_EQ(asked, (std::vector<std::string>{"/v3/lease/grant", "/v3/lease/grant"}));
}

TEST_F(EtcdLeases, BeginsAnewForATicketThatWouldHaveLessOfIt) {
  LeaseId lease = obtain();
  EXPECT_FALSE(leases.needs_keep_alive(lease, kLength));
  suspend(801ms);
  EXPECT_TRUE(leases.needs_keep_alive(lease, kLength));
  EXPECT_TRUE(keep_alive(lease));
  EXPECT_FALSE(leases.needs_keep_alive(lease, kLength));
}

TEST_F(EtcdLeases, OneThatEndedInASuspendServesNobody) {
  LeaseId lease = obtain();
  leases.spare(lease);
  suspend(15s);
  EXPECT_TRUE(leases.has_ended(lease));
  EXPECT_NE(obtain(), lease);
}

}  // namespace
}  // namespace weft::durable::etcd
