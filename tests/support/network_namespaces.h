// SPDX-License-Identifier: MIT
#pragma once
// Machines of a test's own, as far as the network goes: network namespaces with cables to a switch, which can be pulled. Nothing leaves them, and nothing
// of them is seen elsewhere.
//
//     Network network(4, {"clients", "peers"});          // four machines on two switches: 10.0.<switch>.<1 + machine>
//     Process server = network.start(0, "etcd", {…});       // there
//     co_await network.cut(0, 1);                          // the first is not on "peers" any more: what is sent is lost without a word
//     co_await network.mend(0, 1);
//
// A namespace has no name: it lives in a process that sleeps in it, and is gone with that, whatever becomes of the test. So is what was started there.
//
// Needs       root, or user namespaces (run_as_root_of_its_own()); unshare, nsenter, setpriv (util-linux), ip (iproute2).
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/this_test.h"
#include "weft/run/process.h"
#include "weft/weft.h"

namespace weft::test {

// For who is not root: the same test once more, as the root of a user namespace. Returns: whether it has been run so.
inline bool run_as_root_of_its_own() {
  if (::geteuid() == 0) return false;
  ProcessOptions options = this_test_as("");
  options.environment->pop_back();
  options.arguments.insert(
      options.arguments.begin(),
      {"--user", "--map-root-user", std::filesystem::read_symlink("/proc/self/exe").string()});
  options.program = "unshare";
  EventLoop loop;
  auto root = [&]() -> Task<void> {
    Process process = or_throw(Process::spawn(std::move(options)));
    ExitStatus status = or_throw(co_await process.wait());
    EXPECT_TRUE(status.success()) << status.text() << ": it needs root, or user namespaces";
  };
  run(loop, root());
  return true;
}

class Network {
 public:
  Network(std::size_t machines, std::vector<std::string> switches)
      : switches_(std::move(switches)) {
    for (std::size_t i = 0; i <= machines; ++i) sleepers_.push_back(namespace_of_its_own());
    for (const Process& each : sleepers_) wait_until_apart(each.id());
    std::string plan;
    for (const std::string& name : switches_)
      plan += "link add " + name + " type bridge\nlink set " + name + " up\n";
    for (std::size_t i = 0; i < machines; ++i) {
      for (std::size_t s = 0; s < switches_.size(); ++s) {
        const std::string port = port_of(i, s);
        plan += "link add " + port + " type veth peer name eth" + std::to_string(s) + " netns " +
                std::to_string(sleepers_[i].id()) + "\nlink set " + port + " master " +
                switches_[s] + " up\n";
      }
    }
    configure(hub(), plan);
    for (std::size_t i = 0; i < machines; ++i) {
      std::string own = "link set lo up\n";
      for (std::size_t s = 0; s < switches_.size(); ++s) {
        const std::string name = "eth" + std::to_string(s);
        own += "addr add " + address(i, s) + "/24 dev " + name + "\nlink set " + name + " up\n";
      }
      configure(sleepers_[i], own);
    }
  }

  [[nodiscard]] static std::string address(std::size_t machine, std::size_t at_switch) {
    return "10.0." + std::to_string(at_switch) + "." + std::to_string(1 + machine);
  }

  // Makes of them the options of a program that is started there.
  void there(std::size_t machine, ProcessOptions& options) const {
    // By its own name: /proc/self would be another's.
    if (options.program == "/proc/self/exe")
      options.program = std::filesystem::read_symlink(options.program).string();
    std::vector<std::string> before = entering(sleepers_[machine]);
    before.push_back(std::exchange(options.program, before.front()));
    options.arguments.insert(options.arguments.begin(), before.begin() + 1, before.end());
  }

  Task<void> cut(std::size_t machine, std::size_t at_switch) {
    return change("link set " + port_of(machine, at_switch) + " nomaster\n");
  }
  Task<void> mend(std::size_t machine, std::size_t at_switch) {
    return change("link set " + port_of(machine, at_switch) + " master " + switches_[at_switch] +
                  "\n");
  }

 private:
  [[nodiscard]] static std::string port_of(std::size_t machine, std::size_t at_switch) {
    return "port" + std::to_string(at_switch) + "to" + std::to_string(machine);
  }
  [[nodiscard]] const Process& hub() const { return sleepers_.back(); }

  // It ends with this process.
  static Process namespace_of_its_own() {
    ProcessOptions options("setpriv",
                           {"--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"});
    options.in = Redirect::null();
    return or_throw(Process::spawn(std::move(options)));
  }
  static std::string network_of(const std::string& process) {
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/" + process + "/ns/net", gone).string();
  }
  static void wait_until_apart(pid_t sleeper) {
    for (int tries = 0; tries < 5000; ++tries, ::usleep(1000)) {
      const std::string there = network_of(std::to_string(sleeper));
      if (!there.empty() && there != network_of("self")) return;
    }
    throw std::runtime_error("no network namespace can be made here: run as root");
  }
  [[nodiscard]] static std::vector<std::string> entering(const Process& sleeper) {
    return {"setpriv", "--pdeathsig", "KILL", "nsenter", "-t", std::to_string(sleeper.id()),
            "-n",      "--"};
  }

  static Task<void> tell(const Process& where, std::string plan) {
    std::vector<std::string> words = entering(where);
    words.insert(words.end(), {"ip", "-batch", "-"});
    ProcessOptions options(words.front(), {words.begin() + 1, words.end()});
    RunProcessOptions how;
    how.input = plan;
    Finished done = or_throw(co_await run_process(std::move(options), std::move(how)));
    if (!done.status.success()) throw std::runtime_error("ip: " + done.err + " of: " + plan);
  }
  static void configure(const Process& where, const std::string& plan) {
    EventLoop loop;
    run(loop, tell(where, plan));
  }
  Task<void> change(std::string plan) { return tell(hub(), std::move(plan)); }

  std::vector<std::string> switches_;
  std::vector<Process> sleepers_;  // the machines', and at last the one that has the switches
};

}  // namespace weft::test
