// SPDX-License-Identifier: MIT
#include "weft/inspect/deadlock.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "wait_graph.h"
#include "weft/core/executor.h"
#include "weft/core/moving.h"
#include "weft/core/tree.h"
#include "weft/run/io_context.h"
#include "weft/sync/lock_book.h"

namespace weft::inline v0::inspect {

namespace {

using detail::Wait;
using weft::detail::LockReport;
using weft::detail::Strand;

// A holder that waits for one that waits for one …: further up it is not looked for.
constexpr std::size_t kBlockedMax = 64;

// Those who wait for the end of a wait, first the one that waits itself. A task of another loop is
// the last: who awaits it is for its own loop to say.
std::vector<Wait::Blocked> blocked_by(Strand& waiter, const Executor& here) {
  std::vector<Wait::Blocked> blocked;
  for (const Strand* each = &waiter; each && blocked.size() < kBlockedMax;) {
    const std::uint32_t home = each->home.load(weft::detail::relaxed);
    blocked.push_back({each, home});
    each = home == here.home() ? weft::detail::needing(*each) : nullptr;
  }
  return blocked;
}

// Empty if it is no wait that could be part of a deadlock.
std::optional<Wait> wait_of(const LockReport& report, const Executor& here) {
  if (!report.waiter || !report.holder) return std::nullopt;
  return Wait{.home = here.home(),
              .lock = report.lock,
              .ticket = report.ticket,
              .holder = report.holder,
              .holder_home = report.holder_home,
              .blocked = blocked_by(*report.waiter, here)};
}

// The first look: every wait of this loop.
Task<void> list_waits(std::vector<Wait>& found) {
  const Executor& here = *Executor::current_or_null();
  for (const LockReport& report : weft::detail::lock_waits_here()) {
    if (std::optional<Wait> wait = wait_of(report, here)) found.push_back(std::move(*wait));
  }
  co_return;
}

// A suspicion, and what the second look says of it.
struct Suspect {
  Wait first;
  std::optional<Wait> second;
  Deadlocked about;
};
using Circle = std::vector<Suspect>;

Deadlocked describe(const LockReport& report, const Executor& here) {
  return {.lock = weft::detail::thing_name(report.kind, report.name),
          .wanted_at = report.wanted_at,
          .held_at = report.held_at,
          .loop = here.home(),
          .stack = weft::detail::task_stack(*report.waiter)};
}

auto name_of(const auto& wait) { return std::tuple(wait.lock, wait.ticket, wait.holder); }

constexpr auto kByName = [](const auto& a, const auto& b) { return name_of(a) < name_of(b); };

std::vector<LockReport> sorted(std::vector<LockReport> waits) {
  std::sort(waits.begin(), waits.end(), kByName);
  return waits;
}

// The second look: the suspects of this loop.
Task<void> look_again(std::vector<Circle>& circles) {
  const Executor& here = *Executor::current_or_null();
  std::vector<LockReport> waits;  // when there is somebody to be found
  for (Circle& circle : circles) {
    for (Suspect& suspect : circle) {
      if (suspect.first.home != here.home()) continue;
      if (waits.empty()) waits = sorted(weft::detail::lock_waits_here());
      auto found = std::lower_bound(waits.begin(), waits.end(), suspect.first, kByName);
      if (found == waits.end() || name_of(*found) != name_of(suspect.first)) continue;
      suspect.second = wait_of(*found, here);
      if (suspect.second) suspect.about = describe(*found, here);
    }
  }
  co_return;
}

bool leads_to_twice(const Suspect& from, const Suspect& to) {
  return from.second && to.second && leads_to(from.first, to.first) &&
         leads_to(*from.second, *to.second);
}

std::optional<Deadlock> confirmed(Circle& circle) {
  Deadlock found;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    Suspect& next = circle[(i + 1) % circle.size()];
    if (!leads_to_twice(circle[i], next)) return std::nullopt;
    next.about.through_child = next.first.blocked.front().task != circle[i].first.holder;
  }
  for (Suspect& each : circle) found.tasks.push_back(std::move(each.about));
  return found;
}

}  // namespace

Task<std::vector<Deadlock>> find_deadlocks(std::vector<Executor*> loops) {
  std::vector<Wait> waits;
  for (Executor* loop : loops) co_await on(*loop, list_waits(waits));
  std::vector<Circle> circles;
  for (const std::vector<std::size_t>& circle : detail::find_circles(waits)) {
    Circle& suspects = circles.emplace_back();
    for (std::size_t index : circle) suspects.push_back({waits[index], std::nullopt, {}});
  }
  std::vector<Deadlock> found;
  if (circles.empty()) co_return found;
  // All loops, also those without a suspect: so each has done something else between the two looks,
  // which is what tells that a holder is the one that was meant (M4).
  for (Executor* loop : loops) co_await on(*loop, look_again(circles));
  for (Circle& circle : circles) {
    if (std::optional<Deadlock> deadlock = confirmed(circle)) found.push_back(std::move(*deadlock));
  }
  co_return found;
}

Task<std::vector<Deadlock>> find_deadlocks(IOContext& context) {
  std::vector<Executor*> loops;
  for (std::size_t i = 0; i < context.workers(); ++i) loops.push_back(&context.loop(i));
  co_return co_await find_deadlocks(std::move(loops));
}

Task<std::vector<Deadlock>> find_deadlocks() {
  if (IOContext* context = IOContext::current_or_null())
    co_return co_await find_deadlocks(*context);
  std::vector<Executor*> here{Executor::current_or_null()};
  co_return co_await find_deadlocks(std::move(here));
}

std::string to_text(const Deadlock& deadlock) {
  const std::size_t count = deadlock.tasks.size();
  std::string text = "deadlock of " + std::to_string(count) + (count == 1 ? " task\n" : " tasks\n");
  for (std::size_t i = 0; i < count; ++i) {
    const Deadlocked& each = deadlock.tasks[i];
    const std::size_t next = (i + 1) % count;
    text += "task " + std::to_string(i + 1) + " on loop " + std::to_string(each.loop) + " wants " +
            each.lock + " in " + weft::detail::place_name(each.wanted_at) + "\n";
    text += "  which task " + std::to_string(next + 1) +
            (deadlock.tasks[next].through_child ? "'s parent" : "") + " has, locked in " +
            weft::detail::place_name(each.held_at) + "\n";
    for (std::size_t begin = 0; begin < each.stack.size();) {
      const std::size_t end = std::min(each.stack.find('\n', begin), each.stack.size());
      text += "    " + each.stack.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
  }
  return text;
}

}  // namespace weft::inline v0::inspect
