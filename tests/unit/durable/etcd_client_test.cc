// SPDX-License-Identifier: MIT
// Whom the client asks, how often and how long: against members that are a script, in virtual time.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "durable/etcd/etcd_client.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace weft::durable::etcd {
namespace {

using namespace std::chrono_literals;

Answer answer(int status, std::string json) {
  Answer made;
  made.status = status;
  made.json = std::move(json);
  return made;
}
Answer refusal(int status, int code, const std::string& message) {
  return answer(status, R"({"error":")" + message + R"(","message":")" + message + R"(","code":)" +
                            std::to_string(code) + "}");
}

class Script final : public Transport {
 public:
  using Member = std::function<Task<Result<Answer>>(const Question&)>;
  Task<Result<Answer>> call(std::size_t member, Question question) override {
    asked.push_back(member);
    tokens.push_back(question.token);
    co_return co_await members[member](question);
  }
  Task<Result<std::unique_ptr<AnswerStream>>> stream(std::size_t member, Question) override {
    streamed.push_back(member);
    co_return std::unexpected(std::make_error_code(std::errc::connection_refused));
  }
  std::vector<Member> members;
  std::vector<std::size_t> asked, streamed;
  std::vector<std::string> tokens;
};

Task<Result<Answer>> says(Answer what) { co_return what; }
Task<Result<Answer>> hangs(const Question&) {
  co_await suspend_forever();
  co_return answer(200, "{}");
}
Task<Result<Answer>> fails(const Question&) {
  co_return std::unexpected(std::make_error_code(std::errc::connection_refused));
}
Task<Result<Answer>> works(const Question&) {
  co_return answer(200, R"({"header":{"revision":"7"}})");
}

struct EtcdClient : ::testing::Test {
  explicit EtcdClient(std::size_t members = 3) {
    for (std::size_t i = 0; i < members; ++i) {
      http::Endpoint endpoint;
      endpoint.host = "member" + std::to_string(i);
      options.endpoints.push_back(endpoint);
    }
  }
  Client& client() {
    if (!made_) {
      auto transport = std::make_unique<Script>();
      script = transport.get();
      script->members.resize(options.endpoints.size(), works);
      made_ = std::make_unique<Client>(options, std::move(transport));
    }
    return *made_;
  }
  Outcome<Reply> call() {
    auto root = [&]() -> Task<Outcome<Reply>> {
      const TimePoint begun = now();
      Outcome<Reply> reply = co_await client().call("/v3/kv/range", "{}", client().deadline());
      took = now() - begun;
      co_return reply;
    };
    return run(loop, root());
  }

  testing::VirtualLoop loop;
  EtcdOptions options;
  Script* script = nullptr;
  std::chrono::nanoseconds took{};

 private:
  std::unique_ptr<Client> made_;
};

TEST_F(EtcdClient, StaysWithWhoAnswers) {
  client();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(call());
  EXPECT_EQ(script->asked, std::vector<std::size_t>(4, script->asked[0]));
  EXPECT_EQ(took, 0ns);
}

TEST_F(EtcdClient, AMemberThatHangsCostsOneAttempt) {
  client();
  ASSERT_TRUE(call());
  const std::size_t first = script->asked[0];
  script->members[first] = hangs;
  Outcome<Reply> reply = call();
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->repeated);
  EXPECT_EQ(took, 2s);
  ASSERT_TRUE(call());
  EXPECT_EQ(took, 0ns) << "it went back to the one that hangs";
  EXPECT_EQ(script->asked.back(), (first + 1) % 3);
}

TEST_F(EtcdClient, AskingTheNextNeedsNoPause) {
  client();
  ASSERT_TRUE(call());
  const std::size_t first = script->asked[0];
  script->members[first] = script->members[(first + 1) % 3] = fails;
  ASSERT_TRUE(call());
  EXPECT_EQ(took, 0ns);
  EXPECT_EQ(script->asked.back(), (first + 2) % 3);
}

TEST_F(EtcdClient, WhenAllFailThereAreFewAttemptsAndABound) {
  client();
  script->members.assign(3, fails);
  Outcome<Reply> reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().lock_error().kind(), LockError::unreachable);
  EXPECT_EQ(took, 5s);
  EXPECT_LT(script->asked.size(), 60u);
  EXPECT_GT(script->asked.size(), 12u);
}

TEST_F(EtcdClient, WhenAllHangTheBoundHolds) {
  client();
  script->members.assign(3, hangs);
  EXPECT_FALSE(call());
  EXPECT_EQ(took, 5s);
  EXPECT_EQ(script->asked.size(), 3u);
}

TEST_F(EtcdClient, WhatPassesIsAskedAgainAndWhatDoesNotIsSaid) {
  struct Case {
    Answer answer;
    bool passes;
  };
  for (const Case& each :
       {Case{refusal(503, 14, "etcdserver: no leader"), true},
        Case{refusal(503, 14, "etcdserver: request timed out"), true},
        Case{refusal(429, 8, "etcdserver: too many requests"), true},
        Case{answer(502, "<html>"), true}, Case{answer(500, ""), true},
        Case{refusal(429, 8, "etcdserver: mvcc: database space exceeded"), false},
        Case{refusal(403, 7, "etcdserver: permission denied"), false},
        Case{refusal(404, 5, "etcdserver: requested lease not found"), false},
        Case{answer(404, "Not Found"), false}, Case{answer(200, "no JSON"), false},
        Case{answer(200, R"({"error":{"grpc_code":7,"message":"permission denied"}})"), false}}) {
    client();
    int calls = 0;
    Script::Member once = [&](const Question& question) -> Task<Result<Answer>> {
      return ++calls == 1 ? says(each.answer) : works(question);
    };
    script->members.assign(3, once);
    Outcome<Reply> reply = call();
    EXPECT_EQ(reply.has_value(), each.passes) << each.answer.json;
    if (!reply) {
      EXPECT_EQ(reply.error().kind(), Failure::refused);
      EXPECT_EQ(reply.error().lock_error().kind(), LockError::storage);
    }
  }
}

struct EtcdSigningIn : EtcdClient {
  EtcdSigningIn() : EtcdClient(1) {
    options.user = "u";
    options.password = "p";
    client();
    script->members[0] = [this](const Question& question) -> Task<Result<Answer>> {
      if (question.path == "/v3/auth/authenticate") {
        ++sign_ins;
        co_await sleep_for(10ms);
        if (question.json != R"({"name":"u","password":"p"})")
          co_return refusal(400, 3, "authentication failed");
        valid = "token" + std::to_string(sign_ins);
        co_return answer(200, R"({"token":")" + valid + "\"}");
      }
      if (question.token != valid || never)
        co_return refusal(401, 16, "etcdserver: invalid auth token");
      co_return answer(200, "{}");
    };
  }
  int sign_ins = 0;
  std::string valid = "none";
  bool never = false;
};

TEST_F(EtcdSigningIn, OnceAndAgainWhenTheTokenIsRefused) {
  EXPECT_TRUE(call());
  EXPECT_TRUE(call());
  EXPECT_EQ(sign_ins, 1);
  EXPECT_EQ(script->tokens.back(), "token1");
  valid = "ended";
  Outcome<Reply> reply = call();
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->repeated) << "what was refused was not carried out";
  EXPECT_EQ(sign_ins, 2);
}

TEST_F(EtcdSigningIn, ManyAtOnceSignInOnce) {
  auto root = [&]() -> Task<void> {
    std::vector<Task<Outcome<Reply>>> many;
    for (int i = 0; i < 10; ++i) many.push_back(client().call("/x", "{}", client().deadline()));
    auto all = co_await all_of(std::move(many));
    EXPECT_TRUE(all);
  };
  run(loop, root());
  EXPECT_EQ(sign_ins, 1);
}

TEST_F(EtcdSigningIn, NotForEver) {
  never = true;
  Outcome<Reply> reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code(), Code::unauthenticated);
  EXPECT_LE(sign_ins, 4);
}

TEST_F(EtcdSigningIn, NotWhereNobodyWantsIt) {
  script->members[0] = [](const Question& question) -> Task<Result<Answer>> {
    if (question.path != "/v3/auth/authenticate") co_return answer(200, "{}");
    co_return refusal(412, 9, "etcdserver: authentication is not enabled");
  };
  EXPECT_TRUE(call());
}

TEST(EtcdBackoff, GrowsToItsBound) {
  Backoff backoff;
  std::chrono::nanoseconds most{};
  for (int i = 0; i < 100; ++i) {
    const std::chrono::nanoseconds pause = backoff.next();
    EXPECT_GE(pause, Backoff::kFirst / 2);
    EXPECT_LT(pause, Backoff::kLast * 3 / 2);
    most = std::max(most, pause);
  }
  EXPECT_GT(most, Backoff::kLast / 2);
  backoff.reset();
  EXPECT_LT(backoff.next(), Backoff::kFirst * 2);
}

}  // namespace
}  // namespace weft::durable::etcd
