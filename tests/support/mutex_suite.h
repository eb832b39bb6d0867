// SPDX-License-Identifier: MIT
#pragma once
// What durable::Mutex promises, whatever engine is under it: the seed's list. The tests are in unit/durable/mutex_suite_test.cc, compiled once for
// all the engines of a program, which are said where it has them:
//
//     class MyStores final : public Stores { … };
//     constexpr MutexSetting kMine{"Mine", true, 1s, 15s, fresh_stores<MyStores>};
//     INSTANTIATE_TEST_SUITE_P(On, MutexSuite, ::testing::Values(&kMine), setting_name);
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "support/durable_fixture.h"
#include "support/loop_fixture.h"
#include "weft/durable/engine.h"
#include "weft/durable/mutex.h"
#include "weft/weft.h"

namespace weft::test {

using durable::Engine;
using durable::LockContext;
using durable::LockError;
using durable::LockResult;
using DurableMutex = durable::Mutex;  // not the one of sync/
using Engines = std::vector<Engine*>;

// One store, and those who open it.
class Stores {
 public:
  Stores() = default;
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;
  virtual ~Stores() = default;
  // Another session on it.
  [[nodiscard]] virtual std::unique_ptr<durable::LockStore> make() const = 0;
};
struct MutexSetting {
  const char* name;
  bool is_exact;  // on the virtual clock: time passes in sleeps only
  std::chrono::nanoseconds
      unit;  // the step in which the tests think: on a real clock so long that a busy machine does not matter
  std::chrono::nanoseconds lease;
  std::unique_ptr<Stores> (*fresh)();  // another store
};
template <class S>
std::unique_ptr<Stores> fresh_stores() {
  return std::make_unique<S>();
}
inline void PrintTo(const MutexSetting* setting, std::ostream* out) { *out << setting->name; }
inline std::string setting_name(const ::testing::TestParamInfo<const MutexSetting*>& info) {
  return info.param->name;
}

class MutexSuite : public ::testing::TestWithParam<const MutexSetting*> {
 protected:
  using Duration = std::chrono::nanoseconds;
  using Body = std::function<Task<void>(Engines&)>;

  // Runs body(engines) with so many engines on one store: as many processes would have.
  void with_engines(std::size_t count, const Body& body);
  void with_engines_on(Loop& loop, const Stores& stores, std::size_t count, const Body& body);

  static bool is_exact() { return GetParam()->is_exact; }
  static Duration lease() { return GetParam()->lease; }
  static Duration units(int count) { return GetParam()->unit * count; }
  static auto wait(int count) { return sleep_for(units(count)); }
  // What takes so long takes exactly so long, where time stands still; elsewhere no less, and no hang.
  static void expect_took(Duration took, Duration expected);

  static durable::MutexOptions options(std::string resource = "r");
  static Task<DurableMutex> open(Engine& engine, std::string resource = "r");
  // With a lease that ends after until_tickets() has given up: what leaves the queue does so by itself.
  static Task<DurableMutex> open_for_long(Engine& engine);
  static Task<std::size_t> tickets(Engine& engine);
  // Looks until there are so many.
  static Task<void> until_tickets(Engine& engine, std::size_t count);
  static Task<std::uint64_t> token_of(DurableMutex& lock);
  static Task<void> never(LockContext&);

  AnyLoop loop_{is_exact() ? LoopKind::virtual_time : LoopKind::runtime};
  const std::unique_ptr<Stores> stores_ = GetParam()->fresh();
};

}  // namespace weft::test
