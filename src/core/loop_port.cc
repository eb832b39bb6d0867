// SPDX-License-Identifier: MIT
#include "weft/core/loop_port.h"

#include <new>

#include "weft/base/assert.h"
#include "weft/core/executor.h"
#include "weft/core/thread_state.h"

namespace weft::inline v0::detail {

namespace {

// Never destroyed: a thread that ends after main() may still post.
struct Slab {
  std::mutex mutex;
  LoopPort ports[kLoopsMax + 1];
  HomeIndex free_list[kLoopsMax];
  HomeIndex free_count = 0;
  HomeIndex used = 0;  // ports ever handed out
};

Slab& slab() noexcept {
  alignas(Slab) static std::byte storage[sizeof(Slab)];
  static Slab* made = new (storage) Slab;
  return *made;
}

}  // namespace

LoopPort& port_at(HomeIndex index) noexcept {
  static Slab& all = slab();
  return all.ports[index];
}

HomeIndex acquire_port(Executor& owner) {
  Slab& all = slab();
  HomeIndex index;
  {
    std::lock_guard lock(all.mutex);
    if (all.free_count > 0) {
      index = all.free_list[--all.free_count];
    } else if (all.used < kLoopsMax) {
      index = ++all.used;
    } else {
      throw_usage_error("kLoopsMax event loops exist already: end some, or share them");
    }
  }
  LoopPort& port = all.ports[index];
  std::lock_guard lock(port.mutex);
  port.executor = &owner;
  port.woken = false;
  port.group = nullptr;
  port.inbox.reopen();
  port.arrivals.accept();
  return index;
}

void release_port(HomeIndex index) noexcept {
  Slab& all = slab();
  LoopPort& port = all.ports[index];
  {
    std::lock_guard lock(port.mutex);  // P2: no wake() is under way when this is over
    port.executor = nullptr;
    port.wake = nullptr;
    port.wake_context = nullptr;
  }
  std::lock_guard lock(all.mutex);
  all.free_list[all.free_count++] = index;
}

void LoopPort::wake_owner() noexcept {
  Executor* here = thread_state().executor;
  if (here && &here->port() == this && wake) {
    // The owner itself, in a callback of its loop. It cannot go away meanwhile, and what it does now
    // may post again.
    wake(wake_context);
    return;
  }
  std::lock_guard lock(mutex);
  if (wake) {
    wake(wake_context);
    return;
  }
  woken = true;
  wake_up.notify_one();
}

}  // namespace weft::inline v0::detail
