// SPDX-License-Identifier: MIT
#pragma once
// weft::bench::ServerProcess: a server that is measured from outside, all servers alike.
//
// `<server> [argument]...` announces its port on standard output (harness/loopback.h). It lives as long as the ServerProcess,
// and never longer than this program (PR_SET_PDEATHSIG).

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace weft::bench {

class ServerProcess {
 public:
  // On the last core that this program may use, and there alone. Throws: std::runtime_error if it does not start.
  explicit ServerProcess(char** command);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // User and system, all its threads. The kernel brings it up to date when the server leaves the core.
  [[nodiscard]] double cpu_ns() const;
  [[nodiscard]] double resident_bytes() const;

 private:
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
  clockid_t cpu_clock_ = 0;
};

// What the CPU and the wall clock say of one stretch of a server's work.
class ServerWatch {
 public:
  // Waits until the server is asleep.
  explicit ServerWatch(const ServerProcess& server);
  // Returns: the answer line for `operations` operations done since construction.
  [[nodiscard]] std::string per_operation(double operations) const;

 private:
  const ServerProcess& server_;
  double cpu_ns_;
  double wall_ns_;
};

// Asks a server what it is: `<server> [argument]... --info` prints one line.
[[nodiscard]] std::string describe_server(char** command);

}  // namespace weft::bench
