// SPDX-License-Identifier: MIT
#pragma once
// Processors: how many this process may use, and binding a thread to one of them.
#include <sched.h>

namespace weft::inline v0::detail {

[[nodiscard]] unsigned processors_allowed() noexcept;
[[nodiscard]] cpu_set_t processors_of_this_thread() noexcept;

// Binds the calling thread to the n-th of `processors`, modulo their number, until this object goes.
class Pinned {
 public:
  Pinned(bool wanted, unsigned n, const cpu_set_t& processors) noexcept;
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  bool pinned_ = false;
  cpu_set_t before_;
};

}  // namespace weft::inline v0::detail
