// SPDX-License-Identifier: MIT
#include "weft/core/held_lock.h"

#ifdef WEFT_AWAITABLE_STATE_DEBUG

#include <string>

#include "this_thread.h"
#include "weft/base/assert.h"
#include "weft/core/executor.h"
#include "weft/core/tree.h"

namespace weft::inline v0::detail {

void HeldLock::locked(const char* kind, const char* name, std::source_location at) noexcept {
  locked_by(this_thread().running, kind, name, at);
}

void HeldLock::locked_by(const Strand* task, const char* kind, const char* name,
                         std::source_location at) noexcept {
  Executor& here = *this_thread().executor;
  by_ = task;
  home_ = here.home();
  kind_ = kind;
  name_ = name;
  at_ = at;
  here.held_locks().push_back(*this);
}

void HeldLock::unlocked() noexcept {
  // Elsewhere it is nobody's to unlink: the lock will say so.
  const Executor* here = this_thread().executor;
  if (linked() && here && here->home() == home_) unlink();
}

void require_no_locks(const Strand& strand, const char* what) {
  for (const HeldLock& held : this_thread().executor->held_locks()) {
    if (held.by_ != &strand) continue;
    throw UsageError(std::string(what) + ": this task holds " + thing_name(held.kind_, held.name_) +
                     ", locked in " + place_name(held.at_) +
                     ". A guard stays on the loop that locked it: unlock it first, or use on(loop, "
                     "task)");
  }
}

}  // namespace weft::inline v0::detail

#endif
