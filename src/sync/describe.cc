// SPDX-License-Identifier: MIT
#include "describe.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "weft/base/log.h"
#include "weft/core/executor.h"

namespace weft::inline v0::detail {

std::string loop_name(HomeIndex home) {
  return home == 0 ? std::string("no loop") : "loop " + std::to_string(home);
}

std::string standing(WaitPlace place) {
  return std::to_string(place.place) + " of " + std::to_string(place.of) + " waiting";
}

void describe_wait(TaskTreeCollector& tree, Waited waited, WaitPlace at) {
  std::string text = thing_name(waited.kind, waited.name);
  if (waited.what) text += std::string(" ") + waited.what;
  tree.node(text + ", " + (at.place == 0 ? waited.notified : standing(at)));
}

std::string holder_name(HomeIndex home, const LockHolder::Who& who) {
  const Executor* here = Executor::current_or_null();
  const std::string on = here && here->home() == home ? std::string() : " on " + loop_name(home);
  if (who.at.line() == 0) return "a task" + on + " that was just given it";
  if (!who.task) return "whoever has its guard" + on + ", locked in " + place_name(who.at);
  return "task" + on + " in " + place_name(who.at);
}

std::string held_for(HeldSince since) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const Executor* here = Executor::current_or_null();
  const std::int64_t ns = here ? std::max<std::int64_t>(here->coarse_ns() - since.ns, 0) : 0;
  char text[48];
  if (ns >= kNsPerSecond) {
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) / 1e9);
  } else {
    std::snprintf(text, sizeof text, "%.0f ms", static_cast<double>(ns) / 1e6);
  }
  return (since.exact ? " for " : " for at least ") + std::string(text);
}

std::string ordinal(WaitPlace place) {
  const unsigned units = place.place % 10, tens = place.place / 10 % 10;
  const char* ending = "th";
  if (tens != 1 && units >= 1 && units <= 3) ending = units == 1 ? "st" : units == 2 ? "nd" : "rd";
  return std::to_string(place.place) + ending + " of " + std::to_string(place.of);
}

void abort_awaited(Waited waited) noexcept {
  log(LogLevel::error, thing_name(waited.kind, waited.name) +
                           " is destroyed while tasks wait for it. Let it outlive the tasks that "
                           "use it.");
  std::abort();
}

}  // namespace weft::inline v0::detail
