// SPDX-License-Identifier: MIT
#pragma once
// What the contestants of suite durable share: servers that end with their program, workers that are processes, percentiles.
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::bench {

// A directory that ends with the program.
class Scratch {
 public:
  Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A program that is killed with this one, and when this ends.
class Spawned {
 public:
  // out: -1, or where its standard output goes.
  explicit Spawned(const std::vector<std::string>& command, int out = -1);
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned();
  // Until it ends. Throws: std::runtime_error if it failed.
  void wait();

 private:
  pid_t pid_ = 0;
};

// One etcd, in a directory of its own, ready to answer.
class EtcdServer {
 public:
  EtcdServer();
  [[nodiscard]] std::uint16_t port() const { return client_port_; }

 private:
  Scratch scratch_;
  std::uint16_t client_port_;
  Spawned server_;
};

[[nodiscard]] std::uint16_t free_port();
// Until somebody listens there. Throws: std::runtime_error after ten seconds.
void await_port(std::uint16_t port);

// `count` processes of `command`, each of which writes a byte when it is ready to begin and ends when it is done. begin() is called when all
// are ready. Returns: nanoseconds from begin() to the end of the last.
[[nodiscard]] double time_workers(const std::vector<std::string>& command, std::size_t count,
                                  void (*begin)(void*), void* argument);
// In a worker.
void say_ready();

// The answer line for one latency: of `samples`, in nanoseconds, the one below which `part` of them are.
[[nodiscard]] std::string percentile(std::vector<double>& samples, double part);
[[nodiscard]] std::string wall_only(double ns_per_operation);

}  // namespace weft::bench
