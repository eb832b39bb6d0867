// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Child: a process that this one has started and has to collect. Reaper: who does that
// when nobody else will.
//
// Invariants
//   P1  a child is collected once: by the try_collect() that finds it ended, or by the reaper, to
//       whom its number goes when the Child does. Until then its number is nobody else's, and may be
//       sent signals.
#include <sys/types.h>

#include <memory>
#include <optional>

#include "weft/base/result.h"
#include "weft/base/unique_fd.h"
#include "weft/run/process.h"

namespace weft::inline v0::detail {

class Child {
 public:
  Child() noexcept = default;
  // Kills it, unless it was collected.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // It runs. Once.
  void begin(pid_t pid, const ProcessOptions& options) noexcept;
  // Returns: how it ended, if it has; the same again after that.
  std::optional<Result<ExitStatus>> try_collect() noexcept;
  Result<void> kill(int signal) noexcept;
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }  // -1: none, or collected
  [[nodiscard]] pid_t id() const noexcept { return pid_; }

  bool has_waiter = false;

 private:
  pid_t pid_ = 0;  // 0: it was never begun
  bool own_group_ = false;
  UniqueFd pidfd_;
  std::optional<Result<ExitStatus>> status_;
};

// Collects a child that is about to end, on a thread that exists while there are some.
void collect_later(pid_t pid) noexcept;

}  // namespace weft::inline v0::detail
