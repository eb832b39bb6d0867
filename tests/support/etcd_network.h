// SPDX-License-Identifier: MIT
#pragma once
// Three members of etcd, each on a machine of its own (network_namespaces.h), and a fourth machine for those who use them. The members speak with
// each other on one switch and with their clients on another: so either can be cut.
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/network_namespaces.h"
#include "support/temporary_directory.h"

namespace weft::test {

class EtcdNetwork {
 public:
  static constexpr std::size_t kMembers = 3;
  static constexpr std::size_t kClients = kMembers;  // the machine of theirs
  enum Switch : std::size_t { to_clients, to_members };

  EtcdNetwork() {
    for (std::size_t i = 0; i < kMembers; ++i) start(i);
  }

  [[nodiscard]] static std::string url() {
    std::string hosts;
    for (std::size_t i = 0; i < kMembers; ++i)
      hosts += (i > 0 ? "," : "") + Network::address(i, to_clients) + ":2379";
    return "etcd://" + hosts + "/torture";
  }
  // Where clients are.
  void at_clients(ProcessOptions& options) const { network_.there(kClients, options); }

  void start(std::size_t which) {
    std::string all;
    for (std::size_t i = 0; i < kMembers; ++i)
      all += (i > 0 ? ",n" : "n") + std::to_string(i) + "=" + peer(i);
    ProcessOptions options("etcd", {"--name",
                                    "n" + std::to_string(which),
                                    "--data-dir",
                                    directory_.file("member" + std::to_string(which)),
                                    "--listen-client-urls",
                                    client(which),
                                    "--advertise-client-urls",
                                    client(which),
                                    "--listen-peer-urls",
                                    peer(which),
                                    "--initial-advertise-peer-urls",
                                    peer(which),
                                    "--initial-cluster",
                                    all,
                                    "--initial-cluster-state",
                                    "new",
                                    "--election-timeout",
                                    "500",
                                    "--heartbeat-interval",
                                    "50",
                                    "--logger",
                                    "zap",
                                    "--log-level",
                                    "fatal"});
    options.in = Redirect::null();
    options.out = Redirect::null();
    options.err = Redirect::null();
    network_.there(which, options);
    members_[which].emplace(or_throw(Process::spawn(std::move(options))));
  }
  // SIGKILL, and it is gone.
  Task<void> kill(std::size_t which) {
    static_cast<void>(members_[which]->kill(SIGKILL));
    static_cast<void>(co_await members_[which]->wait());
    members_[which].reset();
  }
  [[nodiscard]] bool all_run() {
    for (auto& each : members_) {
      if (!each || each->try_wait()) return false;
    }
    return true;
  }
  Task<void> cut(std::size_t which, Switch from) { return network_.cut(which, from); }
  Task<void> mend(std::size_t which, Switch to) { return network_.mend(which, to); }

  // The one that leads, as it says itself; none if nobody answers within a moment.
  Task<std::optional<std::size_t>> leader() {
    for (std::size_t i = 0; i < kMembers; ++i) {
      ProcessOptions options("curl",
                             {"-s", "-m", "0.5", "-d", "{}", client(i) + "/v3/maintenance/status"});
      at_clients(options);
      Finished asked = or_throw(co_await run_process(std::move(options)));
      const std::string own = field(asked.out, "member_id");
      if (!own.empty() && own == field(asked.out, "leader")) co_return i;
    }
    co_return std::nullopt;
  }

 private:
  [[nodiscard]] static std::string client(std::size_t which) {
    return "http://" + Network::address(which, to_clients) + ":2379";
  }
  [[nodiscard]] static std::string peer(std::size_t which) {
    return "http://" + Network::address(which, to_members) + ":2380";
  }
  static std::string field(const std::string& json, const std::string& name) {
    const std::string before = "\"" + name + "\":\"";
    const std::size_t at = json.find(before);
    if (at == json.npos) return "";
    const std::size_t begin = at + before.size();
    return json.substr(begin, json.find('"', begin) - begin);
  }

  TemporaryDirectory directory_{TemporaryDirectory::where_syncs_are_cheap()};
  Network network_{kMembers + 1, {"clients", "members"}};
  std::array<std::optional<Process>, kMembers> members_;
};

}  // namespace weft::test
