// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::BlockingJob: work for a thread that may block. It lies in the awaiting frame, lent to
// a BlockingPool until its loop hears that it is done, or it was withdrawn.
#include "weft/core/executor.h"

namespace weft::inline v0::detail {

struct BlockingJob : Runnable {
  // done: on the loop that submitted it.
  BlockingJob() noexcept : Runnable(&arrived) {}
  BlockingJob(const BlockingJob&) = delete;
  BlockingJob& operator=(const BlockingJob&) = delete;

  void (*work)(BlockingJob&) noexcept = nullptr;  // on a thread of the pool
  void (*done)(BlockingJob&) noexcept = nullptr;  // on the loop
  HomeIndex home = 0;
  bool queued = false;  // under the pool's lock
  BlockingJob* prev_job = nullptr;
  BlockingJob* next_job = nullptr;

 private:
  static void arrived(Runnable& work) noexcept {
    auto& self = static_cast<BlockingJob&>(work);
    self.done(self);
  }
};

}  // namespace weft::inline v0::detail
