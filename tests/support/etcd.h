// SPDX-License-Identifier: MIT
#pragma once
// etcd as a program: one member, or three, on loopback, in a directory that is gone afterwards.
//
//     Etcd& etcd = shared_etcd();                 // one member, for all tests of the program: use a prefix of your own
//     Etcd cluster(3);                            // is up when it is made
//     cluster.kill(0);  cluster.start(0);         // SIGKILL; the same member again, with what it had written
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/fetch.h"
#include "support/temporary_directory.h"
#include "weft/http/client.h"
#include "weft/net/tcp.h"
#include "weft/run/process.h"
#include "weft/weft.h"

namespace weft::test {

class Etcd {
 public:
  // arguments: further ones. scheme: of its client port.
  explicit Etcd(std::size_t members = 1, std::vector<std::string> arguments = {},
                std::string scheme = "http")
      : arguments_(std::move(arguments)), scheme_(std::move(scheme)) {
    for (std::size_t i = 0; i < members; ++i) members_.push_back({free_port(), free_port(), {}});
    for (std::size_t i = 0; i < members; ++i) start(i);
    if (scheme_ == "http") wait_until_healthy();
  }

  void start(std::size_t which) {
    const std::string home = directory_.file("member" + std::to_string(which));
    const std::string client = scheme_ + "://127.0.0.1:" + std::to_string(members_[which].port);
    std::string all;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      all += (i > 0 ? ",n" : "n") + std::to_string(i) + "=" + peer(i);
    }
    // Elections in a third of the usual time, and so leases from 1 s on.
    std::vector<std::string> arguments{"--name",
                                       "n" + std::to_string(which),
                                       "--data-dir",
                                       home,
                                       "--listen-client-urls",
                                       client,
                                       "--advertise-client-urls",
                                       client,
                                       "--listen-peer-urls",
                                       peer(which),
                                       "--initial-advertise-peer-urls",
                                       peer(which),
                                       "--initial-cluster",
                                       all,
                                       "--initial-cluster-state",
                                       "new",
                                       "--election-timeout",
                                       "300",
                                       "--heartbeat-interval",
                                       "50",
                                       "--logger",
                                       "zap",
                                       "--log-level",
                                       "error"};
    arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
    ProcessOptions options("etcd", std::move(arguments));
    options.out = Redirect::null();
    options.err = Redirect::null();
    members_[which].process.emplace(or_throw(Process::spawn(std::move(options))));
  }

  // SIGKILL, and it is gone.
  void kill(std::size_t which) {
    signal(which, SIGKILL);
    while (!members_[which].process->try_wait()) ::usleep(1000);
    members_[which].process.reset();
  }
  // SIGSTOP and SIGCONT, for one that hangs.
  void signal(std::size_t which, int signal) { or_throw(members_[which].process->kill(signal)); }

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::uint16_t port(std::size_t which = 0) const { return members_[which].port; }
  // "127.0.0.1:1,127.0.0.1:2"
  [[nodiscard]] std::string hosts() const {
    std::string text;
    for (const Member& each : members_) {
      text += (text.empty() ? "" : ",") + std::string("127.0.0.1:") + std::to_string(each.port);
    }
    return text;
  }
  [[nodiscard]] std::string url(const std::string& prefix) const {
    return "etcd://" + hosts() + "/" + prefix;
  }

  // Asks the gateway of one member, and throws if it says no.
  Task<std::string> ask(std::string path, std::string json, std::size_t which = 0) {
    http::ClientOptions options{.proxies = {}};
    http::Client client(options);
    const std::string at = "http://127.0.0.1:" + std::to_string(members_[which].port) + path;
    http::ClientRequest request(http::Method::post, or_throw(http::Url::parse(at)), {},
                                std::move(json));
    http::ClientResponse response = or_throw(co_await client.request(std::move(request)));
    const int status = response.status();
    std::string body = or_throw(co_await response.body().read_all());
    if (status != 200) throw std::runtime_error(path + ": " + body);
    co_return body;
  }

  // Which member leads; by its place.
  Task<std::size_t> leader() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].process) continue;
      std::string status = co_await ask("/v3/maintenance/status", "{}", i);
      const std::string own = field(status, "member_id"), leads = field(status, "leader");
      if (own == leads) co_return i;
    }
    throw std::runtime_error("nobody leads");
  }

  void wait_until_healthy() {
    EventLoop loop;
    auto root = [&]() -> Task<void> {
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].process) co_await until_healthy(i);
      }
    };
    auto in_time = [&]() -> Task<bool> {
      auto ended = co_await timeout(std::chrono::seconds(20), root());
      co_return ended.has_value();
    };
    if (!run(loop, in_time()))
      throw std::runtime_error("etcd does not start: is etcd-server installed?");
  }

 private:
  struct Member {
    std::uint16_t port, peer_port;
    std::optional<Process> process;
  };

  static std::uint16_t free_port() {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    return or_throw(listener.local_address()).port();
  }
  [[nodiscard]] std::string peer(std::size_t which) const {
    return "http://127.0.0.1:" + std::to_string(members_[which].peer_port);
  }
  static std::string field(const std::string& json, const std::string& name) {
    const std::string before = "\"" + name + "\":\"";
    const std::size_t at = json.find(before);
    if (at == json.npos) return "";
    return json.substr(at + before.size(), json.find('"', at + before.size()) - at - before.size());
  }
  // It answers a read that needs the majority.
  Task<void> until_healthy(std::size_t which) {
    while (true) {
      bool healthy = true;
      auto look = [&]() -> Task<void> {
        std::string asked = R"({"key":"YQ=="})";
        static_cast<void>(co_await ask("/v3/kv/range", std::move(asked), which));
      };
      auto failed = [&](std::exception_ptr) -> Task<void> {
        healthy = false;
        co_return;
      };
      co_await try_(look).catch_(failed);
      if (healthy) co_return;
      if (members_[which].process->try_wait()) throw std::runtime_error("etcd has ended by itself");
      co_await sleep_for(std::chrono::milliseconds(20));
    }
  }

  // In memory where that can be: a busy disk takes seconds for an fsync, and the tests are about other things.
  static std::filesystem::path parent() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code error;
    const bool is_there =
        std::filesystem::is_directory(memory, error) && ::access(memory.c_str(), W_OK) == 0;
    return is_there ? memory : std::filesystem::temp_directory_path();
  }

  TemporaryDirectory directory_{parent()};
  std::vector<std::string> arguments_;
  std::string scheme_;
  std::vector<Member> members_;
};

inline Etcd& shared_etcd() {
  static Etcd etcd;
  return etcd;
}

// A prefix that nobody had before, in this run.
inline std::string fresh_prefix() {
  static int count = 0;
  return "test" + std::to_string(++count);
}

}  // namespace weft::test
