// SPDX-License-Identifier: MIT
#pragma once
// How things of sync/ are called in messages and in the task tree, beside wait_report.h.
#include <source_location>
#include <string>

#include "weft/core/strand.h"
#include "weft/core/tree.h"
#include "weft/sync/lock_holder.h"
#include "weft/sync/wait_report.h"

namespace weft::inline v0::detail {

// "loop 3", or "no loop".
[[nodiscard]] std::string loop_name(HomeIndex home);
// "1 of 4 waiting".
[[nodiscard]] std::string standing(WaitPlace place);
// Of a lock: "task in transfer(Account&) at bank.cc:42", with its loop if that is another than this.
[[nodiscard]] std::string holder_name(HomeIndex home, const LockHolder::Who& who);
// " for 1.2 s", " for at least 31 ms".
[[nodiscard]] std::string held_for(HeldSince since);
// "3rd of 5".
[[nodiscard]] std::string ordinal(WaitPlace place);

}  // namespace weft::inline v0::detail
