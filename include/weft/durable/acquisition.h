// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::detail::Acquisition: one task's way through a lock, for mutex.h.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/core/task.h"
#include "weft/durable/lock_context.h"
#include "weft/durable/lock_error.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::durable {

struct MutexOptions;

namespace detail {

class EngineState;

// The capacity of a mutex: who is alone takes all of it, a reader takes 1.
inline constexpr std::uint32_t kWhole = 1u << 30;

// What is asked for.
struct LockOrder {
  std::shared_ptr<EngineState> engine;
  std::shared_ptr<const MutexOptions> options;
  std::uint32_t weight;
  std::uint32_t capacity;
  std::chrono::nanoseconds timeout;
  bool only_if_free = false;
};

// What is done under a lock.
using Section = std::function<Task<void>()>;

class Acquisition {
 public:
  explicit Acquisition(LockOrder order);

  // Before hold(): not acquired by then, it is a timeout, though its own acquire_timeout is longer.
  void set_deadline(TimePoint deadline);
  // Waits for the lock, runs the section unless error() says why there is no lock, and gives it back.
  Task<void> hold(const Section& section);
  [[nodiscard]] LockContext& context() noexcept { return context_; }
  // D3: by the clock the lease has time left. If not, the lock is lost.
  [[nodiscard]] bool has_time();
  // What context().scope() says; null: the section has ended.
  void set_scope(Scope* scope) noexcept;
  // After hold(): why there is no result.
  [[nodiscard]] const std::optional<LockError>& error() const noexcept;

 private:
  Task<void> hold_at_home(const Section& section);
  Task<void> hold_elsewhere(const Section& section);
  Task<void> guard(const Section& section);

  std::shared_ptr<HeldLock> held_;
  LockContext context_;
};

// In the order in which all processes acquire them. LockError::invalid if a resource stands there twice, or there is none.
[[nodiscard]] LockResult<std::vector<Acquisition>> in_order(std::vector<LockOrder> orders);
// The section, in a scope of its own that is all of these locks', joined.
Task<void> run_in_scope(std::span<Acquisition> locks, const Section& section);
// One inside the other, from the `from`-th on.
Task<void> hold_all(std::span<Acquisition> locks, const Section& section, std::size_t from = 0);
[[nodiscard]] std::optional<LockError> first_error(const std::vector<Acquisition>& locks);
// For a section that ended cancelled, though nobody had asked its caller to: now it is.
Task<void> end_cancelled();

}  // namespace detail

}  // namespace weft::inline v0::durable
