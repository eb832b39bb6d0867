// SPDX-License-Identifier: MIT
#include "affinity.h"

namespace weft::inline v0::detail {

cpu_set_t processors_of_this_thread() noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_ZERO(&allowed);
  return allowed;
}

unsigned processors_allowed() noexcept {
  cpu_set_t allowed = processors_of_this_thread();
  int count = CPU_COUNT(&allowed);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

Pinned::Pinned(bool wanted, unsigned n, const cpu_set_t& processors) noexcept
    : before_(processors_of_this_thread()) {
  if (!wanted || CPU_COUNT(&processors) == 0) return;
  unsigned skip = n % static_cast<unsigned>(CPU_COUNT(&processors));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &processors) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pinned_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
    return;
  }
}

Pinned::~Pinned() {
  if (pinned_) ::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace weft::inline v0::detail
