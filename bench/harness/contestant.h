// SPDX-License-Identifier: MIT
#pragma once
// weft::bench: what every C++ contestant needs: clocks, resident memory, the line protocol.
//
// A contestant is a program that stays alive between samples. The driver writes one line, the
// program answers with one line:
//
//   info                 what is measured: library, version, compiler
//   run <measure> <n>    n operations: `wall_ns=… cpu_ns=…` per operation, or `bytes=…` per task,
//                        or `syscalls=…` per operation
//
// Anything it cannot do it answers with `error <why>`. End of input ends the program.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace weft::bench {

// Wall and CPU time of one stretch of work. CPU time is the whole process's: helper threads count.
class Stopwatch {
 public:
  Stopwatch() { restart(); }
  void restart();
  // CPU time from now, wall time from a moment that is yet to come.
  void restart_wall_at(std::chrono::steady_clock::time_point wall);
  // Returns: the answer line for `operations` operations done since the last restart().
  [[nodiscard]] std::string per_operation(std::size_t operations) const;

 private:
  double wall_ns_ = 0;
  double cpu_ns_ = 0;
};

// Resident memory of this process that was added since construction. Meant for a fresh process.
class MemoryProbe {
 public:
  MemoryProbe();
  // Returns: the answer line for `tasks` tasks.
  [[nodiscard]] std::string per_task(std::size_t tasks) const;

 private:
  double bytes_;
};

[[nodiscard]] double resident_bytes(pid_t process);

struct Measure {
  const char* name;
  std::string (*run)(std::size_t n);
};

// Returns: the exit status for main().
int serve(const char* info, std::span<const Measure> measures);

}  // namespace weft::bench
