// SPDX-License-Identifier: MIT
#include "harness/syscall_counter.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace weft::bench {
namespace {

std::uint64_t tracepoint() {
  for (const char* root : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    std::ifstream file(std::string(root) + "/events/raw_syscalls/sys_enter/id");
    std::uint64_t id = 0;
    if (file >> id) return id;
  }
  throw std::runtime_error("system calls cannot be counted here: no readable tracefs");
}

}  // namespace

SyscallCounter::SyscallCounter(pid_t process) {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_TRACEPOINT;
  event.config = tracepoint();
  event.inherit = 1;
  event.disabled = 1;
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  DIR* tasks = opendir(folder.c_str());
  if (tasks == nullptr) throw std::runtime_error("the server is gone");
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    const long id = std::stol(task->d_name);
    const long counter = syscall(SYS_perf_event_open, &event, id, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (counter < 0) {
      closedir(tasks);
      throw std::system_error(errno, std::generic_category(),
                              "system calls cannot be counted here: perf_event_open");
    }
    counters_.push_back(static_cast<int>(counter));
  }
  closedir(tasks);
  for (const int counter : counters_) {
    if (ioctl(counter, PERF_EVENT_IOC_ENABLE, 0) != 0)
      throw std::system_error(errno, std::generic_category(), "ioctl");
  }
}

SyscallCounter::~SyscallCounter() {
  for (const int counter : counters_) close(counter);
}

double SyscallCounter::count() const {
  std::uint64_t sum = 0;
  for (const int counter : counters_) {
    std::uint64_t calls = 0;
    if (read(counter, &calls, sizeof calls) != sizeof calls)
      throw std::runtime_error("cannot read the counter of system calls");
    sum += calls;
  }
  return static_cast<double>(sum);
}

}  // namespace weft::bench
