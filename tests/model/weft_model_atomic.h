// SPDX-License-Identifier: MIT
#pragma once
// The seam of "weft/atomic/atomic.h" over Relacy, with a switch that weakens one order.
//
// The checked headers name their orders as they always do; every operation here also learns where
// it was called from, which is its name: "lease_count.h:42:success". Two variables of the
// environment use that:
//
//   WEFT_MODEL_WEAKEN=lease_count.h:42:success:release    this operation loses its release half
//   WEFT_MODEL_SITES=FILE                                 at exit, name every ordered operation met
//
// script/check_model_mutations asks for the names, then weakens each and expects some model to fail.
//
// What Relacy leaves out: in a full search a load sees the newest value or the one before it (a
// random search goes one further back), and a thread's own plain stores continue its release
// sequence, as they did before C++20. weft uses no fences.
#include <relacy/relacy.hpp>
// Relacy's replacements of these words would reach into every header that follows; its operator new
// counts allocations without them.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef HANDLE

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <source_location>
#include <string_view>

namespace weft::inline v0::detail {

// seq_cst is acq_rel with a bit of its own, which is what a weakened one loses.
enum class Order : unsigned { relaxed = 0, acquire = 1, release = 2, acq_rel = 3, seq_cst = 7 };
inline constexpr Order relaxed = Order::relaxed;
inline constexpr Order acquire = Order::acquire;
inline constexpr Order release = Order::release;
inline constexpr Order acq_rel = Order::acq_rel;
inline constexpr Order seq_cst = Order::seq_cst;

}  // namespace weft::inline v0::detail

namespace weft_model {

using Order = weft::detail::Order;
using Where = std::source_location;

inline constexpr Order kSequential = static_cast<Order>(4);

// Which order of an operation: a compare-exchange has two.
enum class Part { success, failure };

inline const char* name_of(Part part) { return part == Part::success ? "success" : "failure"; }
inline const char* file_of(const Where& where) {
  const char* slash = std::strrchr(where.file_name(), '/');
  return slash ? slash + 1 : where.file_name();
}

// The ordered operations of the headers that this run has met. Fixed in size and without
// allocation: the checker counts those.
class Sites {
 public:
  static Sites& all() {
    static Sites sites;
    return sites;
  }

  Order order(Order wanted, const Where& where, Part part) {
    if (wanted == Order::relaxed) return wanted;
    if (list_to_) note(wanted, where, part);
    if (weak_line_ != where.line() || weak_part_ != part || weak_file_ != file_of(where)) {
      return wanted;
    }
    weakened_ = true;
    return static_cast<Order>(static_cast<unsigned>(wanted) & ~static_cast<unsigned>(lost_));
  }

  // Something was to be weakened and was met.
  [[nodiscard]] bool weakened() const { return weakened_; }
  [[nodiscard]] bool weakens() const { return weak_line_ != 0; }

 private:
  static constexpr std::size_t kSitesMax = 64;
  struct Site {
    Where where;
    Part part;
    Order order;
  };

  Sites() {
    list_to_ = std::getenv("WEFT_MODEL_SITES");
    const char* spec = std::getenv("WEFT_MODEL_WEAKEN");
    if (!spec) return;
    static char file[64];
    char part[16], lost[16];
    if (std::sscanf(spec, "%63[^:]:%u:%15[^:]:%15s", file, &weak_line_, part, lost) != 4) {
      std::fprintf(stderr, "WEFT_MODEL_WEAKEN is FILE:LINE:success|failure:acquire|release\n");
      std::exit(2);
    }
    weak_file_ = file;
    weak_part_ = std::string_view(part) == "failure" ? Part::failure : Part::success;
    lost_ = std::string_view(lost) == "acquire"   ? Order::acquire
            : std::string_view(lost) == "release" ? Order::release
                                                  : kSequential;
  }
  ~Sites() {
    if (!list_to_) return;
    std::FILE* out = std::fopen(list_to_, "a");
    for (std::size_t i = 0; i < count_; ++i) {
      const Site& site = sites_[i];
      static const char* const names[] = {"relaxed", "acquire", "release", "acq_rel",
                                          "",        "",        "",        "seq_cst"};
      std::fprintf(out, "%s:%u:%s\t%s\t%s\n", file_of(site.where), unsigned(site.where.line()),
                   name_of(site.part), names[static_cast<unsigned>(site.order)],
                   site.where.function_name());
    }
    std::fclose(out);
  }

  void note(Order order, const Where& where, Part part) {
    // The models' own atomics are not under test.
    if (!std::strstr(where.file_name(), "include/weft/")) return;
    for (std::size_t i = 0; i < count_; ++i) {
      if (sites_[i].where.line() == where.line() && sites_[i].part == part &&
          std::strcmp(sites_[i].where.file_name(), where.file_name()) == 0) {
        return;
      }
    }
    if (count_ == kSitesMax) std::abort();
    sites_[count_++] = {where, part, order};
  }

  const char* list_to_ = nullptr;
  std::string_view weak_file_;
  unsigned weak_line_ = 0;
  Part weak_part_ = Part::success;
  Order lost_ = Order::relaxed;
  bool weakened_ = false;
  Site sites_[kSitesMax];
  std::size_t count_ = 0;
};

inline rl::memory_order order_of(Order wanted, const Where& where, Part part = Part::success) {
  static constexpr rl::memory_order orders[] = {rl::mo_relaxed, rl::mo_acquire, rl::mo_release,
                                                rl::mo_acq_rel, rl::mo_relaxed, rl::mo_acquire,
                                                rl::mo_release, rl::mo_seq_cst};
  return orders[static_cast<unsigned>(Sites::all().order(wanted, where, part))];
}

inline rl::debug_info info_of(const Where& where) {
  return rl::debug_info(where.function_name(), where.file_name(), where.line());
}

// What a thread is about to do, as far as it may concern another's step.
struct Step {
  enum Kind { anything, reads, writes, nobodys } kind = anything;
  const void* object = nullptr;
  // Of a step that may have to wait: whether it could be made now. Null: it always can.
  const bool* possible = nullptr;
};
inline bool concern_each_other(const Step& one, const Step& other) {
  if (one.kind == Step::nobodys || other.kind == Step::nobodys) return false;
  if (one.kind == Step::anything || other.kind == Step::anything) return true;
  return one.object == other.object && (one.kind == Step::writes || other.kind == Step::writes);
}

// The step of the thread that is asking for its turn, for ReducedSearch.
inline Step next_step;

// One step: others may come before it, and nobody in the middle of it.
class Turn {
 public:
  explicit Turn(const Step& step) : hold_(after(step)) {}
  Turn(Step::Kind kind, const void* object) : Turn(Step{kind, object}) {}

 private:
  static rl::context& after(const Step& step) {
    next_step = step;
    rl::ctx().sched();
    next_step = {};
    return rl::ctx();
  }
  rl::preemption_disabler hold_;
};

}  // namespace weft_model

namespace weft::inline v0::detail {

// A mutex whose lock and unlock are steps that ReducedSearch knows.
class StateMutex {
 public:
  void lock() {
    {
      weft_model::Turn turn({weft_model::Step::writes, this, &free_});
    }
    while (!lock_now()) word_.wait(rl::ctx(), false, false, $);
  }
  // Concerns nobody: who would lock cannot before, and who does not lock sees nothing of it.
  void unlock() {
    weft_model::Turn turn(weft_model::Step::nobodys, this);
    free_ = true;
    word_.fetch_add(1, rl::mo_release, $);
    word_.wake(rl::ctx(), 1, $);
  }

 private:
  bool lock_now() {
    rl::preemption_disabler hold(rl::ctx());
    if (!free_) return false;
    free_ = false;
    word_.fetch_add(1, rl::mo_acquire, $);
    return true;
  }

  rl::atomic<unsigned> word_{0};
  bool free_ = true;
};
class StateLock {
 public:
  explicit StateLock(StateMutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;
  ~StateLock() { mutex_.unlock(); }

 private:
  StateMutex& mutex_;
};

// A variable whose reads and writes must be ordered by something else; a data race is an error.
template <class T>
class Guarded {
 public:
  explicit(false) Guarded(T value) : cell_(static_cast<int>(value)) {}
  Guarded& operator=(T value) {
    cell_($) = static_cast<int>(value);
    return *this;
  }
  explicit(false) operator T() const { return static_cast<T>(cell_($).load()); }

 private:
  rl::var<int> cell_;  // which it can print
};

// std::atomic's members, as far as weft uses them; orders are never left out.
template <class T>
class Atomic {
  using Step = weft_model::Step;
  using Turn = weft_model::Turn;
  using Where = std::source_location;

 public:
  Atomic() = default;
  explicit(false) Atomic(T value) : cell_(value) {}

  T load(Order order, Where where = Where::current()) const {
    Turn turn(Step::reads, this);
    return cell_.load(weft_model::order_of(order, where), weft_model::info_of(where));
  }
  void store(T value, Order order, Where where = Where::current()) {
    Turn turn(Step::writes, this);
    cell_.store(value, weft_model::order_of(order, where), weft_model::info_of(where));
  }
  T exchange(T value, Order order, Where where = Where::current()) {
    Turn turn(Step::writes, this);
    return cell_.exchange(value, weft_model::order_of(order, where), weft_model::info_of(where));
  }
  T fetch_add(T value, Order order, Where where = Where::current()) {
    Turn turn(Step::writes, this);
    return cell_.fetch_add(value, weft_model::order_of(order, where), weft_model::info_of(where));
  }
  T fetch_sub(T value, Order order, Where where = Where::current()) {
    Turn turn(Step::writes, this);
    return cell_.fetch_sub(value, weft_model::order_of(order, where), weft_model::info_of(where));
  }
  T fetch_and(T value, Order order, Where where = Where::current()) {
    Turn turn(Step::writes, this);
    return cell_.fetch_and(value, weft_model::order_of(order, where), weft_model::info_of(where));
  }
  T fetch_or(T value, Order order, Where where = Where::current()) {
    Turn turn(Step::writes, this);
    return cell_.fetch_or(value, weft_model::order_of(order, where), weft_model::info_of(where));
  }
  bool compare_exchange_weak(T& expected, T desired, Order success, Order failure,
                             Where where = Where::current()) {
    return compare_exchange(rl::bool_t<true>(), expected, desired, success, failure, where);
  }
  bool compare_exchange_strong(T& expected, T desired, Order success, Order failure,
                               Where where = Where::current()) {
    return compare_exchange(rl::bool_t<false>(), expected, desired, success, failure, where);
  }

 private:
  // Relacy ties the order of failure to that of success, as C++11 did. So the one point at which
  // another thread may come between is taken first; then it is known which of the two will happen.
  // (A spurious failure acquires nothing, which is stricter than the standard.)
  template <class Kind>
  bool compare_exchange(Kind kind, T& expected, T desired, Order success, Order failure,
                        const Where& where) {
    rl::memory_order on_success = weft_model::order_of(success, where, weft_model::Part::success);
    rl::memory_order on_failure = weft_model::order_of(failure, where, weft_model::Part::failure);
    Turn turn(Step::writes, this);
    if (cell_.debug_value() == expected) {
      return cell_.compare_exchange(kind, expected, desired, on_success, rl::mo_relaxed,
                                    weft_model::info_of(where));
    }
    return cell_.compare_exchange(kind, expected, desired, rl::mo_acq_rel, on_failure,
                                  weft_model::info_of(where));
  }

  rl::atomic<T> cell_;
};

}  // namespace weft::inline v0::detail
