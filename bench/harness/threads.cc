// SPDX-License-Identifier: MIT
#include "harness/threads.h"

#include <sched.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace weft::bench {

namespace {

Cores read_allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  Cores cores{.first = -1, .last = -1, .count = CPU_COUNT(&set)};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    if (cores.first < 0) cores.first = core;
    cores.last = core;
  }
  return cores;
}

}  // namespace

Cores allowed_cores() {
  static const Cores cores = read_allowed_cores();  // once: later this thread may be pinned
  return cores;
}

void pin_this_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
}

Cores two_cores() {
  const Cores cores = allowed_cores();
  if (cores.count < 2) throw std::runtime_error("this measure wants two cores");
  return cores;
}

}  // namespace weft::bench
