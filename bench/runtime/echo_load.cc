// SPDX-License-Identifier: MIT
// The load of the echo measures, and their judge: `echo_load <server> [argument]...`.
//
// Starts the server on the last core, drives it from the first with 64 connections of one 64-byte
// message in flight each, and measures it from outside, all servers alike:
//
//   run echo <n>            the server's CPU time per message (user and system, all its threads), and
//                           the wall time, which is the throughput of both sides together
//   run echo_syscalls <n>   system calls that the server's threads enter, per message
//
// The server lives as long as this program, and so do the connections: they are opened, and warmed
// up, before any clock starts.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "harness/closed_loop.h"
#include "harness/contestant.h"
#include "harness/server_process.h"
#include "harness/syscall_counter.h"
#include "harness/threads.h"

namespace weft::bench {
namespace {

constexpr std::size_t kConnections = 64;
constexpr std::size_t kMessageBytes = 64;
constexpr std::size_t kWarmUpMessages = 20'000;

char** server_command = nullptr;

struct Session {
  Session() : server(server_command) {
    pin_this_thread(two_cores().first);
    for (std::size_t i = 1; i <= kConnections; ++i) {
      std::string message(kMessageBytes, '\0');
      std::memcpy(message.data(), &i, sizeof i);  // another one on every connection
      load.add(connect_to_loopback(server.port()),
               {.message = message, .reply_bytes = kMessageBytes, .reply = message});
    }
    load.exchange(kWarmUpMessages);
  }
  ServerProcess server;
  ClosedLoop load;
};

// Started by the first run, not before: an answer to `info` costs nothing.
Session& session() {
  static Session only;
  return only;
}

std::string echo(std::size_t n) {
  auto& [server, load] = session();
  const ServerWatch watch(server);
  return watch.per_operation(load.exchange(n));
}

std::string echo_syscalls(std::size_t n) {
  auto& [server, load] = session();
  const SyscallCounter counter(server.pid());
  const double messages = load.exchange(n);
  return "syscalls=" + std::to_string(counter.count() / messages);
}

constexpr Measure kMeasures[] = {{"echo", echo}, {"echo_syscalls", echo_syscalls}};

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: echo_load <server> [argument]...\n", stderr);
    return 64;
  }
  weft::bench::server_command = argv + 1;
  (void)weft::bench::allowed_cores();
  const std::string info = weft::bench::describe_server(weft::bench::server_command);
  return weft::bench::serve(info.c_str(), weft::bench::kMeasures);
}
