// SPDX-License-Identifier: MIT
// EtcdStore::report(): how long the leases have left is asked for each of them, several at a time: against an etcd that is a script, in
// virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "durable/etcd/etcd_store.h"
#include "durable/etcd/json.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace weft::durable::etcd {
namespace {

using namespace std::chrono_literals;

// Tickets of one resource, each with a lease of its own that has as many seconds left as its number says.
class ManyTickets final : public Transport {
 public:
  explicit ManyTickets(int count) : count_(count) {}

  Task<Result<Answer>> call(std::size_t, Question question) override {
    Answer answer;
    answer.status = 200;
    if (question.path == "/v3/kv/range") {
      answer.json = pairs();
      co_return answer;
    }
    EXPECT_EQ(question.path, "/v3/lease/timetolive");
    co_await sleep_for(10ms);
    ++asked;
    if (asked == fails_at) {
      answer.status = 400;
      answer.json = R"({"error":"no","message":"no","code":3})";
      co_return answer;
    }
    const std::size_t at = question.json.find(R"("ID":")");
    answer.json = R"({"TTL":")" +
                  question.json.substr(at + 6, question.json.find('"', at + 6) - at - 6) + "\"}";
    co_return answer;
  }
  Task<Result<std::unique_ptr<AnswerStream>>> stream(std::size_t, Question) override {
    co_return std::unexpected(std::make_error_code(std::errc::connection_refused));
  }

  int asked = 0;
  int fails_at = 0;  // the n-th question

 private:
  [[nodiscard]] std::string pairs() const {
    const Keys keys("test");
    std::string json;
    for (int i = 1; i <= count_; ++i) {
      TicketValue value;
      value.owner = "owner " + std::to_string(i);
      const std::string key = base64_encoded(keys.ticket("a", 1, static_cast<unsigned>(i)));
      const std::string number = std::to_string(i);
      json += json.empty() ? "" : ",";
      json += R"({"key":")" + key + R"(","value":")" + base64_encoded(write_ticket(value)) +
              R"(","create_revision":")" + number + R"(","mod_revision":")" + number +
              R"(","lease":")" + number + "\"}";
    }
    return R"({"header":{"revision":"99"},"kvs":[)" + json + "]}";
  }

  const int count_;
};

struct EtcdReport : ::testing::Test {
  LockResult<std::vector<ResourceReport>> report(std::unique_ptr<ManyTickets> transport) {
    EtcdOptions options;
    http::Endpoint endpoint;
    endpoint.host = "member";
    options.endpoints.push_back(endpoint);
    options.prefix = "test";
    EtcdStore store(options, std::move(transport));
    auto root = [&]() -> Task<LockResult<std::vector<ResourceReport>>> {
      const TimePoint begun = now();
      LockResult<std::vector<ResourceReport>> all = co_await store.report(std::nullopt);
      took = now() - begun;
      co_return all;
    };
    return run(loop, root());
  }
  weft::testing::VirtualLoop loop;
  std::chrono::nanoseconds took{};
};

TEST_F(EtcdReport, LeasesAreAskedForSeveralAtATime) {
  auto transport = std::make_unique<ManyTickets>(40);
  // The store is gone when it returns.
  LockResult<std::vector<ResourceReport>> all = report(std::move(transport));
  ASSERT_TRUE(all) << all.error().what();
  ASSERT_EQ(all->size(), 1u);
  ASSERT_EQ((*all)[0].tickets.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    const TicketReport& each = (*all)[0].tickets[static_cast<std::size_t>(i)];
    EXPECT_EQ(each.owner, "owner " + std::to_string(i + 1));
    EXPECT_EQ(each.lease_left, std::chrono::seconds(i + 1));
  }
  EXPECT_EQ(took, 30ms) << "16, 16 and 8 of them";
}

TEST_F(EtcdReport, WithoutTicketsNothingIsAskedFor) {
  LockResult<std::vector<ResourceReport>> all = report(std::make_unique<ManyTickets>(0));
  ASSERT_TRUE(all) << all.error().what();
  EXPECT_TRUE(all->empty());
  EXPECT_EQ(took, 0ms);
}

TEST_F(EtcdReport, OneThatFailsFailsTheReportAndNoMoreAreAskedFor) {
  auto transport = std::make_unique<ManyTickets>(40);
  transport->fails_at = 17;
  LockResult<std::vector<ResourceReport>> all = report(std::move(transport));
  EXPECT_FALSE(all);
  EXPECT_EQ(took, 20ms) << "those who were being asked, to their end";
}

}  // namespace
}  // namespace weft::durable::etcd
