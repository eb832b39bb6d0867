// SPDX-License-Identifier: MIT
// The etcd store and servers that end, hang, restart, want a password, or speak TLS.
#include <gtest/gtest.h>
#include <signal.h>

#include "durable/etcd/etcd_store.h"
#include "support/certificates.h"
#include "support/etcd.h"
#include "support/faulty_transport.h"
#include "support/http_peers.h"
#include "support/store_suite.h"
#include "weft/durable/mutex.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

struct ClusterFactory {
  explicit ClusterFactory(Etcd& of)
      : etcd(of), options(or_throw(durable::parse_etcd_url(of.url("test")))) {}

  std::unique_ptr<durable::LockStore> make() {
    return std::make_unique<durable::EtcdStore>(options);
  }
  [[nodiscard]] std::chrono::nanoseconds lease() const { return length; }

  Etcd& etcd;
  durable::EtcdOptions options;
  std::chrono::nanoseconds length = 20s;
};

// The error that open() gives.
LockError open_error(durable::EtcdOptions options) {
  struct Deaf final : durable::LockStore::Listener {
    void granted(TicketNumber, TokenBlock) override {}
    void gone(TicketNumber) override {}
  } deaf;
  EventLoop loop;
  durable::EtcdStore store(std::move(options));
  auto root = [&]() -> Task<LockError> {
    LockResult<> opened = co_await store.open(deaf);
    co_await store.close();
    co_return opened ? LockError(LockError::busy, "it opened") : opened.error();
  };
  LockError error = run(loop, root());
  EXPECT_EQ(loop.strand_count(), 0u);
  return error;
}

TEST(EtcdCluster, AWatchSurvivesARestartOfTheServer) {
  Etcd etcd;
  EventLoop loop;
  ClusterFactory factory(etcd);
  with_sessions(loop, factory, 2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    etcd.kill(0);
    co_await sleep_for(100ms);
    etcd.start(0);
    or_throw(co_await s[0]->release(1, held.tokens));
    TokenBlock next = co_await s[1].until_granted(1);
    EXPECT_GT(next.first, held.tokens.first);
  });
}

TEST(EtcdCluster, WhereNobodyListensIsUnreachableWithinTheBound) {
  durable::EtcdOptions options =
      or_throw(durable::parse_etcd_url("etcd://127.0.0.1:" + std::to_string(free_port()) + "/x"));
  options.call_timeout = 500ms;
  const auto begun = std::chrono::steady_clock::now();
  const LockError error = open_error(options);
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(error.kind(), LockError::unreachable) << error.what();
  EXPECT_TRUE(std::string(error.what()).contains(options.url())) << error.what();
  EXPECT_LT(took, 1s);
}

TEST(EtcdCluster, AServerThatHangsIsUnreachableWithinTheBound) {
  // It takes connections, by its backlog, and says nothing.
  net::TcpListener deaf = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  const std::uint16_t port = or_throw(deaf.local_address()).port();
  durable::EtcdOptions options =
      or_throw(durable::parse_etcd_url("etcd://127.0.0.1:" + std::to_string(port) + "/x"));
  options.attempt_timeout = 300ms;
  options.call_timeout = 800ms;
  const auto begun = std::chrono::steady_clock::now();
  const LockError error = open_error(options);
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(error.kind(), LockError::unreachable) << error.what();
  EXPECT_GE(took, 800ms);
  EXPECT_LT(took, 1500ms);
}

TEST(EtcdCluster, WhatIsNotEtcdIsSaidSo) {
  Served other;
  other([](const std::string& at, http::Server&) -> Task<void> {
    durable::EtcdOptions options =
        or_throw(durable::parse_etcd_url("etcd://" + at.substr(at.find("//") + 2) + "/x"));
    struct Deaf final : durable::LockStore::Listener {
      void granted(TicketNumber, TokenBlock) override {}
      void gone(TicketNumber) override {}
    } deaf;
    durable::EtcdStore store(options);
    LockResult<> opened = co_await store.open(deaf);
    EXPECT_FALSE(opened);
    if (!opened) {
      EXPECT_EQ(opened.error().kind(), LockError::storage) << opened.error().what();
    }
  });
}

TEST(EtcdCluster, AnotherSchemaVersionIsAMismatch) {
  Etcd& etcd = shared_etcd();
  const std::string prefix = fresh_prefix();
  EventLoop loop;
  auto write = [&]() -> Task<void> {
    std::string json =
        R"({"key":")" + durable::etcd::base64_encoded(prefix + "/schema") + R"(","value":"OTk="})";
    static_cast<void>(co_await etcd.ask("/v3/kv/put", std::move(json)));
  };
  run(loop, write());
  const LockError error = open_error(or_throw(durable::parse_etcd_url(etcd.url(prefix))));
  EXPECT_EQ(error.kind(), LockError::mismatch);
  EXPECT_TRUE(std::string(error.what()).contains("version 99")) << error.what();
}

TEST(EtcdCluster, AMemberOfThreeMayDieAndTheLeaderToo) {
  Etcd etcd(3);
  EventLoop loop;
  ClusterFactory factory(etcd);
  with_sessions(loop, factory, 3, [&](Sessions& s) -> Task<void> {
    std::uint64_t last = 0;
    TicketNumber number = 0;
    // Hands it from session to session.
    auto round = [&]() -> Task<void> {
      ++number;
      for (std::size_t i = 0; i < s.size(); ++i) {
        LockResult<Placed> placed = co_await s[i].enqueue("a", number);
        while (!placed && placed.error().is_passing()) placed = co_await s[i].enqueue("a", number);
        or_throw(placed);
        if (i == 0) s[0].granted(number, placed->tokens);
      }
      for (std::size_t i = 0; i < s.size(); ++i) {
        TokenBlock tokens = co_await s[i].until_granted(number);
        EXPECT_GT(tokens.first, last);
        last = tokens.first;
        LockResult<> released = co_await s[i]->release(number, tokens);
        while (!released && released.error().is_passing())
          released = co_await s[i]->release(number, tokens);
        or_throw(released);
      }
    };
    co_await round();
    const std::size_t leader = co_await etcd.leader();
    const std::size_t follower = (leader + 1) % 3;
    etcd.kill(follower);
    co_await round();
    etcd.start(follower);
    co_await sleep_for(300ms);
    etcd.kill(co_await etcd.leader());
    co_await round();
  });
}

TEST(EtcdCluster, AMemberThatHangsIsLeftForTheNext) {
  Etcd etcd(3);
  EventLoop loop;
  ClusterFactory factory(etcd);
  factory.options.attempt_timeout = 500ms;
  with_sessions(loop, factory, 2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    const std::size_t leader = co_await etcd.leader();
    etcd.signal(leader, SIGSTOP);
    LockResult<> released = co_await s[0]->release(1, held.tokens);
    while (!released && released.error().is_passing())
      released = co_await s[0]->release(1, held.tokens);
    or_throw(released);
    // Whose watch is the hung member's hears of it by its renewals, or its guard.
    auto renew = [&]() -> Task<void> {
      while (true) {
        co_await sleep_for(500ms);
        std::vector<TicketNumber> mine{1};
        static_cast<void>(co_await s[1]->renew(std::move(mine)));
      }
    };
    TokenBlock next = co_await with(renew, s[1].until_granted(1));
    EXPECT_GT(next.first, held.tokens.first);
    etcd.signal(leader, SIGCONT);
  });
}

// From now on there is a user "l@cker" with the password "p/w:1", who may use the prefix "test".
void enable_users(Etcd& etcd) {
  EventLoop loop;
  auto enable = [&]() -> Task<void> {
    co_await etcd.ask("/v3/auth/user/add", R"({"name":"root","password":"r"})");
    co_await etcd.ask("/v3/auth/role/add", R"({"name":"root"})");
    co_await etcd.ask("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
    co_await etcd.ask("/v3/auth/role/add", R"({"name":"locks"})");
    const std::string from = durable::etcd::base64_encoded("test/"),
                      to = durable::etcd::base64_encoded("test0");
    std::string permit = R"({"name":"locks","perm":{"permType":"READWRITE","key":")" + from +
                         R"(","range_end":")" + to + R"("}})";
    co_await etcd.ask("/v3/auth/role/grant", std::move(permit));
    co_await etcd.ask("/v3/auth/user/add", R"({"name":"l@cker","password":"p/w:1"})");
    co_await etcd.ask("/v3/auth/user/grant", R"({"user":"l@cker","role":"locks"})");
    co_await etcd.ask("/v3/auth/enable", "{}");
  };
  run(loop, enable());
}

TEST(EtcdCluster, UserAndPassword) {
  Etcd etcd(1, {"--auth-token-ttl", "1"});
  EventLoop loop;
  enable_users(etcd);
  ClusterFactory factory(etcd);
  const LockError nobody = open_error(factory.options);
  EXPECT_EQ(nobody.kind(), LockError::storage);
  EXPECT_TRUE(std::string(nobody.what()).contains("user:password@")) << nobody.what();
  const auto as = [&](const std::string& user, const std::string& prefix) {
    return or_throw(durable::parse_etcd_url("etcd://" + user + "@" + etcd.hosts() + "/" + prefix));
  };
  const LockError wrong = open_error(as("l%40cker:nonsense", "test"));
  EXPECT_EQ(wrong.kind(), LockError::storage) << wrong.what();
  const LockError elsewhere = open_error(as("l%40cker:p%2Fw%3A1", "other"));
  EXPECT_EQ(elsewhere.kind(), LockError::storage) << elsewhere.what();

  factory.options = as("l%40cker:p%2Fw%3A1", "test");
  EXPECT_FALSE(factory.options.url().contains("p/w")) << "a password in a message";
  with_sessions(loop, factory, 2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    // Its tokens, in memory, are lost by that.
    etcd.kill(0);
    etcd.start(0);
    or_throw(co_await s[0]->release(1, held.tokens));
    TokenBlock next = co_await s[1].until_granted(1);
    // And these end by themselves.
    co_await sleep_for(2500ms);
    or_throw(co_await s[1]->release(1, next));
    static_cast<void>(or_throw(co_await s[0].enqueue("a", 2)));
  });
}

TEST(EtcdCluster, AWatchWhoseTokenHasEndedSignsInAgain) {
  Etcd etcd(1, {"--auth-token-ttl", "1"});
  enable_users(etcd);
  struct Factory {
    std::unique_ptr<durable::LockStore> make() { return faulty_store(url, faults); }
    static std::chrono::nanoseconds lease() { return 60s; }
    std::string url;
    Faults faults;
  } factory;
  factory.url = "etcd://l%40cker:p%2Fw%3A1@" + etcd.hosts() + "/test";
  EventLoop loop;
  with_sessions(loop, factory, 2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    co_await sleep_for(2500ms);
    // Session 1 asks for nothing but its watch.
    factory.faults.cut.set();
    co_await sleep_for(50ms);
    factory.faults.cut.reset();
    or_throw(co_await s[0]->release(1, held.tokens));
    static_cast<void>(co_await s[1].until_granted(1));
  });
}

TEST(EtcdCluster, Tls) {
  TemporaryDirectory directory;
  const std::string certificate = directory.write("certificate", server_identity().certificate_pem);
  const std::string key = directory.write("key", server_identity().key_pem);
  Etcd etcd(1, {"--cert-file", certificate, "--key-file", key}, "https");
  ClusterFactory factory(etcd);
  factory.options = or_throw(durable::parse_etcd_url("etcds://" + etcd.hosts() + "/test"));
  EXPECT_EQ(factory.options.url(), "etcds://" + etcd.hosts() + "/test");
  factory.options.connector = direct().connector;
  EventLoop loop;
  with_sessions(loop, factory, 2, [&](Sessions& s) -> Task<void> {
    Placed held = or_throw(co_await s[0].enqueue("a", 1));
    static_cast<void>(or_throw(co_await s[1].enqueue("a", 1)));
    or_throw(co_await s[0]->release(1, held.tokens));
    static_cast<void>(co_await s[1].until_granted(1));
  });
  // Whom the system trusts, this one is not.
  durable::EtcdOptions strict = factory.options;
  strict.connector = nullptr;
  strict.call_timeout = 300ms;
  const LockError error = open_error(strict);
  EXPECT_EQ(error.kind(), LockError::unreachable) << error.what();
}

// By the URL alone: who vouches for the members, and who we are.
TEST(EtcdCluster, TlsWithAPrivateAuthorityAndClientCertificates) {
  TemporaryDirectory directory;
  const Authority authority("A private root");
  const tls::Identity server = authority.issue("server", "IP:127.0.0.1");
  const tls::Identity client = authority.issue("client", "DNS:client");
  const std::string ca = directory.write("ca", authority.pem());
  Etcd etcd(1,
            {"--cert-file", directory.write("sc", server.certificate_pem), "--key-file",
             directory.write("sk", server.key_pem), "--trusted-ca-file", ca, "--client-cert-auth"},
            "https");
  const std::string url = "etcds://" + etcd.hosts() + "/test?timeout=5s&ca=" + ca;
  const std::string shown = "&cert=" + directory.write("cc", client.certificate_pem) +
                            "&key=" + directory.write("ck", client.key_pem);
  EventLoop loop;
  auto use = [](durable::Engine& engine) -> Task<void> {
    durable::MutexOptions options{.resource_id = "a"};
    durable::Mutex lock = or_throw(co_await durable::Mutex::open(engine, options));
    auto section = [](durable::LockContext& held) -> Task<std::uint64_t> {
      co_return held.fencing_token();
    };
    EXPECT_GT(or_throw(co_await lock.on_acquire(section)), 0u);
  };
  auto both = [&]() -> Task<void> {
    or_throw(co_await durable::with_engine(url + shown, use));
    LockResult<> stranger = co_await durable::with_engine(
        "etcds://" + etcd.hosts() + "/test?timeout=300ms&ca=" + ca, use);
    EXPECT_EQ(stranger.error(), LockError::unreachable) << "nobody without a certificate";
  };
  run_on(loop, both());
}

TEST(EtcdCluster, ConnectionsAreBounded) {
  Etcd& etcd = shared_etcd();
  EventLoop loop;
  ClusterFactory factory(etcd);
  factory.options.prefix = fresh_prefix();
  with_sessions(loop, factory, 1, [&](Sessions& s) -> Task<void> {
    const std::size_t before = descriptors();
    std::vector<Task<LockResult<Placed>>> many;
    for (TicketNumber i = 1; i <= 100; ++i)
      many.push_back(s[0].enqueue("r" + std::to_string(i), i));
    std::size_t most = 0;
    auto look = [&]() -> Task<void> {
      while (true) {
        most = std::max(most, descriptors());
        co_await yield();
      }
    };
    auto placed = or_throw(co_await with(look, all_of(std::move(many))));
    EXPECT_EQ(placed.size(), 100u);
    EXPECT_LE(most, before + factory.options.connections_max);
    std::vector<TicketNumber> mine;
    for (TicketNumber i = 1; i <= 300; ++i) mine.push_back(i);
    EXPECT_EQ(or_throw(co_await s[0]->renew(std::move(mine))).size(), 200u);
  });
}

}  // namespace
}  // namespace weft::test
