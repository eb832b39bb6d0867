// SPDX-License-Identifier: MIT
#pragma once
// weft::bench::SyscallCounter: system calls entered by every thread of a process, threads that start later included.
//
// They are counted by the kernel at the tracepoint raw_syscalls:sys_enter: whoever enters the kernel is counted, with or
// without a C library. That needs tracefs and the right to use it; without, the constructor throws and says so. Counting
// costs the process time: measure time without.

#include <sys/types.h>

#include <vector>

namespace weft::bench {

class SyscallCounter {
 public:
  explicit SyscallCounter(pid_t process);
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;
  ~SyscallCounter();

  [[nodiscard]] double count() const;

 private:
  std::vector<int> counters_;
};

}  // namespace weft::bench
