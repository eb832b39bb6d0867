// SPDX-License-Identifier: MIT
#pragma once
// weft::inspect::find_deadlocks(): tasks that wait for each other's locks, and so for ever.
//
//     for (const inspect::Deadlock& found : co_await inspect::find_deadlocks(ctx)) {
//       std::puts(inspect::to_text(found).c_str());
//     }
//
// A cycle is found among any number of tasks, of any of the loops that are asked, a single task that
// waits for a lock of its own included. A task waits for a Mutex or a SharedMutex, also to have it again
// after a Condition's wait; or for children in a nursery, for a Task that it awaits through on(), all_of(),
// then() and the like, one of which waits. It is in the way of others if it has the lock alone, or shares it.
//
// What is returned was so, all at once: every loop is looked at twice, and a wait counts that has not
// ended in between (docs/design/inspect_locks.md). Nothing but a cancel ends such a wait, that of a
// timeout included; or somebody who was lent the guard by reference.
//
// Not seen       a lock whose guard was moved or released, and one of lock_raw(): nobody knows who
//                will unlock it. Of those who share a SharedMutex, more than the first eight
//                (SharedHolders::kNotedMax). A wait for one of several (any_of, timeout). A task that awaits
//                another by its StartedTask. Locks of loops that were not asked, and std::mutex.
// Threads        await it in a task; its own loop need not be one of those that are asked. They go on
//                meanwhile, and are asked one after the other, each between two of its tasks.
// Cancellation   a cancel point at every loop; nothing is left behind.
// Errors         LoopStopped, if a loop takes no more tasks.
// Cost           O(all waits for locks) on each loop, twice if there is a suspicion; no task is visited
//                that does not wait for a lock, or for one that does.
#include <cstddef>
#include <source_location>
#include <string>
#include <vector>

#include "weft/core/task.h"

namespace weft::inline v0 {
class Executor;
class IOContext;
}  // namespace weft::inline v0

namespace weft::inline v0::inspect {

// A task that waits for a lock.
struct Deadlocked {
  std::string lock;                // "Mutex 'accounts'"
  std::source_location wanted_at;  // its lock()
  std::source_location held_at;    // the lock() by which the next one in the circle has it
  // The lock that the one before wants is not its own, but its parent's, who waits for it.
  bool through_child = false;
  unsigned loop = 0;  // its home, as in the task tree
  std::string stack;  // it as in the task tree, and who awaits it, outwards
};

// Each waits for a lock that the next one holds; the last, for one of the first.
struct Deadlock {
  std::vector<Deadlocked> tasks;
};

// On these loops. Requires: they live until it has ended.
[[nodiscard]] Task<std::vector<Deadlock>> find_deadlocks(std::vector<Executor*> loops);
// On all workers of a context.
[[nodiscard]] Task<std::vector<Deadlock>> find_deadlocks(IOContext& context);
// On the loop of the task that awaits it, or all workers of its context.
[[nodiscard]] Task<std::vector<Deadlock>> find_deadlocks();

// For people; several lines, all stacks.
[[nodiscard]] std::string to_text(const Deadlock& deadlock);

}  // namespace weft::inline v0::inspect
