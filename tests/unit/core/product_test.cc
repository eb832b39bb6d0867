// SPDX-License-Identifier: MIT
// The product: every combinator and wrapper, cancelled from outside at every suspension, with every
// way its inside can end, from the same loop and from another, in several orders; and the inside
// may run on another loop, by on(), or move there, by resume_on().
//
// Whatever the point of the cancel: nothing hangs (VirtualLoop throws Stuck), every frame that began
// is destroyed exactly once and after the frames inside it, the end is the undisturbed one or
// "cancelled", and what was produced and may not be dropped is delivered (L5).
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

// How the inside ends when nobody disturbs it. Stubborn: with a value, although cancelled in its
// last stretch.
enum class How { value, error, cancel, stubborn };
enum class End { value, error, cancelled };
// Where the inside runs: with the subject; on another loop, awaited from here; or it goes there in
// its middle, with what awaits it in line, and ends there.
enum class Place { here, on, moves };
const char* const kHowNames[] = {"value", "error", "cancel", "stubborn"};
const char* const kEndNames[] = {"value", "error", "cancelled"};

struct World {
  How how{};
  Place place{};
  VirtualLoop* away = nullptr;
  int live = 0;
  int began = 0;
  int destroyed = 0;
  bool inside_before_outside = true;
  bool produced = false;   // the inside returned its value
  bool delivered = false;  // the await of the subject ended with a value or an error
  int cleanups_begun = 0;
  int cleanups_done = 0;
};

// One per frame. Knows the mark of the frame that awaits it.
class Mark {
 public:
  Mark(World& world, Mark* outer) : world_(world), outer_(outer) {
    ++world_.live;
    ++world_.began;
    if (outer_) ++outer_->inside_;
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() {
    if (inside_ != 0) world_.inside_before_outside = false;
    if (outer_) --outer_->inside_;
    --world_.live;
    ++world_.destroyed;
  }

 private:
  World& world_;
  Mark* outer_;
  int inside_ = 0;
};

Task<void> pause(World& w, Mark* outer) {
  Mark mark(w, outer);
  co_await yield();
  co_await sleep_for(1ms);
}

Task<int> inside_itself(World& w, Mark* outer) {
  Mark mark(w, outer);
  co_await pause(w, &mark);
  if (w.place == Place::moves) {
    co_await resume_on(*w.away);
    EXPECT_TRUE(w.away->is_current());
  }
  co_await yield();
  switch (w.how) {
    case How::error:
      throw std::runtime_error("inside");
    case How::cancel:
      (co_await current_scope()).cancel();
      co_await suspend_forever();
      break;
    case How::stubborn:
      co_await noncancellable(sleep_for(1ms));
      break;
    default:
      break;
  }
  w.produced = true;
  co_return 7;
}
Task<int> inside(World& w, Mark* outer) {
  if (w.place != Place::on) return inside_itself(w, outer);
  auto away = [](World& world, Mark* outside) -> Task<int> {
    Mark mark(world, outside);
    Executor* before = Executor::current_or_null();
    int value = co_await on(*world.away, inside_itself(world, &mark));
    EXPECT_EQ(Executor::current_or_null(), before);
    co_return value;
  };
  return away(w, outer);
}
Task<int> beside(World& w, Mark* outer) {
  Mark mark(w, outer);
  co_await pause(w, &mark);
  co_return 1;
}
Task<int> slow(World& w, Mark* outer) {
  Mark mark(w, outer);
  co_await sleep_for(10ms);
  co_return 2;
}
Task<void> forever(World& w, Mark* outer) {
  Mark mark(w, outer);
  co_await suspend_forever();
}
Task<void> cleanup(World& w, Mark* outer) {
  Mark mark(w, outer);
  ++w.cleanups_begun;
  co_await pause(w, &mark);
  ++w.cleanups_done;
}
Task<std::expected<int, int>> inside_expected(World& w, Mark* outer) {
  Mark mark(w, outer);
  try {
    co_return co_await inside(w, &mark);
  } catch (const std::runtime_error&) {
    co_return std::unexpected(13);
  }
}

// --- The subjects -------------------------------------------------------------------------------

Task<int> in_line(World& w, Mark* m) { co_return co_await inside(w, m); }
Task<int> in_all_of(World& w, Mark* m) {
  auto [a, b] = co_await all_of(inside(w, m), beside(w, m));
  co_return a;
}
Task<int> in_any_of(World& w, Mark* m) {
  auto [a, b] = co_await any_of(inside(w, m), slow(w, m));
  co_return a ? *a : *b;
}
Task<int> in_most_of(World& w, Mark* m) {
  auto [a, b] = co_await most_of(inside(w, m), beside(w, m));
  co_return b.value_or(7);
}
Task<int> in_range(World& w, Mark* m) {
  std::vector<Task<int>> tasks;
  tasks.push_back(inside(w, m));
  tasks.push_back(beside(w, m));
  std::vector<int> values = co_await all_of(std::move(tasks));
  co_return values[0];
}
Task<int> in_then(World& w, Mark* m) {
  auto next = [&](int) { return inside(w, m); };
  co_return co_await (beside(w, m) | then(next));
}
Task<int> before_then(World& w, Mark* m) {
  auto next = [](int value) { return just(value); };
  co_return co_await (inside(w, m) | then(next));
}
Task<int> in_timeout(World& w, Mark* m) {
  std::expected<int, TimedOut> value = co_await timeout(1h, inside(w, m));
  co_return value.value();
}
Task<int> in_short_timeout(World& w, Mark* m) {
  std::expected<int, TimedOut> value = co_await timeout(500us, inside(w, m));
  co_return value ? *value : -1;
}
Task<int> in_noncancellable(World& w, Mark* m) { co_return co_await noncancellable(inside(w, m)); }
Task<int> in_disposable(World& w, Mark* m) { co_return co_await disposable(inside(w, m)); }
Task<int> in_until_cancelled_and(World& w, Mark* m) {
  co_return co_await with(until_cancelled_and(cleanup(w, m)), inside(w, m));
}
Task<int> in_try(World& w, Mark* m) {
  auto body = [&] { return inside(w, m); };
  auto handler = [&](const std::runtime_error&) { return beside(w, m); };
  auto last = [&] { return cleanup(w, m); };
  co_return co_await try_(body).catch_(handler).finally(last);
}
Task<int> in_handler(World& w, Mark* m) {
  auto body = []() -> Task<int> {
    throw std::logic_error("body");
    co_return 0;
  };
  auto handler = [&](const std::exception_ptr&) { return inside(w, m); };
  co_return co_await try_(body).catch_(handler);
}
Task<int> beside_with(World& w, Mark* m) { co_return co_await with(forever(w, m), inside(w, m)); }
Task<int> in_background(World& w, Mark* m) { co_return co_await with(inside(w, m), slow(w, m)); }
Task<int> in_annotate(World& w, Mark* m) { co_return co_await annotate("name", inside(w, m)); }
Task<int> in_nursery(World& w, Mark* m) {
  int result = 0;
  auto child = [&]() -> Task<void> { result = co_await inside(w, m); };
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(child);
    Task<int> other = beside(w, m);
    co_await std::move(other);
    co_return join;
  };
  co_await with_nursery(body);
  co_return result;
}
Task<int> in_start_on(World& w, Mark* m) {
  int result = 0;
  auto child = [&]() -> Task<void> { result = co_await inside(w, m); };
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start_on(*w.away, child);
    Task<int> other = beside(w, m);
    co_await std::move(other);
    co_return join;
  };
  co_await with_nursery(body);
  co_return result;
}
// The race is run by tasks that are elsewhere from the start.
Task<int> in_any_of_on(World& w, Mark* m) {
  auto [a, b] = co_await any_of(on(*w.away, inside(w, m)), on(*w.away, slow(w, m)));
  co_return a ? *a : *b;
}
Task<int> in_started(World& w, Mark* m) {
  StartedTask<int> started = inside(w, m).start_in_current_scope();
  co_return co_await std::move(started);
}
Task<int> in_ok(World& w, Mark* m) {
  auto body = [&]() -> Task<std::expected<int, int>> {
    int value = co_await ok(inside_expected(w, m));
    co_return value;
  };
  std::expected<int, int> value = co_await body();
  if (!value) throw std::runtime_error("ok");
  co_return *value;
}
Task<int> in_guard(World& w, Mark* m) {
  auto guard = co_await ignore_cancellation();
  auto [a, b] = co_await all_of(inside(w, m), beside(w, m));
  co_return a;
}
Task<int> in_leaves(World& w, Mark* m) {
  Mark mark(w, m);
  co_await any_of(sleep_for(1ms), suspend_forever());
  co_await all_of(sleep_for(1ms), yield());
  co_await timeout(1ms, suspend_forever());
  co_return 3;
}
Task<int> in_layers(World& w, Mark* m) {
  auto body = [&] { return timeout(1h, with(forever(w, m), disposable(inside(w, m)))); };
  auto last = [&] { return cleanup(w, m); };
  auto whole = try_(body).finally(last);
  auto [a, b] = co_await all_of(annotate("layers", std::move(whole)), beside(w, m));
  co_return a.value();
}

struct Subject {
  const char* name;
  Task<int> (*make)(World&, Mark*);
  End on_value, on_error, on_cancel;
  bool keeps;             // a value that was produced is delivered, cancelled or not
  bool shielded = false;  // its end is always delivered
  bool partial = false;   // delivers what there is when it is cancelled
  [[nodiscard]] End undisturbed(How how) const {
    return how == How::error ? on_error : how == How::cancel ? on_cancel : on_value;
  }
};

constexpr End V = End::value;
constexpr End E = End::error;
constexpr End C = End::cancelled;
const Subject kSubjects[] = {
    {"InLine", in_line, V, E, C, true},
    {"AllOf", in_all_of, V, E, C, false},
    {"AnyOf", in_any_of, V, E, V, true},
    {"MostOf", in_most_of, V, E, V, true, false, true},
    {"Range", in_range, V, E, C, false},
    {"InThen", in_then, V, E, C, true},
    {"BeforeThen", before_then, V, E, C, true},
    {"Timeout", in_timeout, V, E, C, true},
    {"ShortTimeout", in_short_timeout, V, V, V, true},
    {"Noncancellable", in_noncancellable, V, E, E, true, true},
    {"Disposable", in_disposable, V, E, C, false},
    {"UntilCancelledAnd", in_until_cancelled_and, V, E, C, true},
    {"Try", in_try, V, V, C, true},
    {"Handler", in_handler, V, E, C, true},
    {"With", beside_with, V, E, C, true},
    {"Background", in_background, V, E, V, false},
    {"Annotate", in_annotate, V, E, C, true},
    {"Nursery", in_nursery, V, E, V, false},
    {"StartOn", in_start_on, V, E, V, false},
    {"AnyOfOn", in_any_of_on, V, E, V, true},
    {"Started", in_started, V, E, C, true},
    {"Ok", in_ok, V, E, C, true},
    {"Guard", in_guard, V, E, E, false},
    {"Leaves", in_leaves, V, V, V, false},
    {"Layers", in_layers, V, E, C, false},
};

// --- The disturbance ----------------------------------------------------------------------------

struct Moment {
  std::chrono::microseconds at;  // < 0: never
  int turns;                     // and so many turns later
  [[nodiscard]] bool never() const { return at < 0us; }
};

Task<void> disturb(CancelHandle target, Moment when) {
  if (when.never()) co_return;
  if (when.at > 0us) co_await sleep_for(when.at);
  for (int i = 0; i < when.turns; ++i) co_await yield();
  target.cancel();
}

Task<int> watched(World& w, const Subject& subject) {
  Mark mark(w, nullptr);
  int value = 0;
  try {
    value = co_await subject.make(w, &mark);
  } catch (...) {
    w.delivered = true;
    throw;
  }
  w.delivered = true;
  co_return value;
}

// Begins the disturbance on the loop that it is posted to.
struct Elsewhere : Runnable {
  Elsewhere(PromiseChildLease l, CancelHandle t, Moment m)
      : Runnable(&start), lease(std::move(l)), target(std::move(t)), when(m) {}
  static void start(Runnable& self) noexcept {
    auto& here = static_cast<Elsewhere&>(self);
    disturb(std::move(here.target), here.when)
        .start_immediate_with_parent_scope(std::move(here.lease))
        .detach();
  }
  PromiseChildLease lease;
  CancelHandle target;
  Moment when;
};

Task<End> root(World& w, const Subject& subject, Moment when, VirtualLoop* other) {
  Scope& scope = co_await current_scope();
  StartedTask<int> started = watched(w, subject).start(scope);
  Elsewhere elsewhere(other ? scope.lease() : PromiseChildLease(), started.cancel_handle(), when);
  if (other) {
    other->post(elsewhere);
  } else {
    disturb(started.cancel_handle(), when).start(scope).detach();
  }
  Outcome<int> how = co_await started.outcome();
  EXPECT_EQ(w.live, 0) << "L7: the outcome is published after the last frame is gone";
  co_return how.has_value() ? End::value : how.has_error() ? End::error : End::cancelled;
}

class ProductTest : public ::testing::TestWithParam<std::tuple<Subject, Place>> {
 protected:
  LogCapture log;  // disposable() drops errors, and they are logged

  // Returns: whether the cancel had an effect.
  static bool once(How how, Moment when, bool across, std::uint64_t seed) {
    const auto& [subject, place] = GetParam();
    SCOPED_TRACE(::testing::Message()
                 << "inside: " << kHowNames[static_cast<int>(how)] << ", cancelled at "
                 << when.at.count() << " us + " << when.turns << " turns, "
                 << (across ? "from another loop" : "from this loop") << ", seed " << seed);
    VirtualLoop loop;
    VirtualLoop other(loop);
    VirtualLoop away(loop);
    loop.shuffle_by(seed);
    other.shuffle_by(seed);
    away.shuffle_by(seed);
    World w;
    w.how = how;
    w.place = place;
    w.away = &away;
    End end{};
    EXPECT_NO_THROW(end = run(loop, root(w, subject, when, across ? &other : nullptr)));
    End undisturbed = subject.undisturbed(how);
    bool partial = subject.partial && end == End::value;
    if (when.never() || (end != End::cancelled && !partial)) {
      EXPECT_STREQ(kEndNames[static_cast<int>(end)], kEndNames[static_cast<int>(undisturbed)]);
    }
    EXPECT_EQ(w.live, 0);
    EXPECT_EQ(w.began, w.destroyed);
    EXPECT_TRUE(w.inside_before_outside);
    EXPECT_EQ(w.cleanups_begun, w.cleanups_done) << "a shielded cleanup runs to its end";
    EXPECT_TRUE(w.delivered || !(subject.keeps && w.produced)) << "L5: nothing taken is lost";
    EXPECT_TRUE(w.delivered || !subject.shielded);
    return end != undisturbed;
  }
};

constexpr int kTurnsMax = 11;  // more than any subject takes at one point in time
constexpr std::chrono::microseconds kInstants[] = {0us, 500us, 1ms, 1500us, 2ms, 3ms};
constexpr std::uint64_t kSeeds[] = {0, 1, 0x9e3779b97f4a7c15};

TEST_P(ProductTest, UndisturbedItEndsAsItsRulesSay) {
  for (How how : {How::value, How::error, How::cancel, How::stubborn}) {
    for (std::uint64_t seed : kSeeds) once(how, {-1us, 0}, false, seed);
  }
}

void cancel_everywhere(auto once, std::uint64_t seed, bool across) {
  for (How how : {How::value, How::error, How::cancel, How::stubborn}) {
    bool too_late = false;
    for (std::chrono::microseconds at : kInstants) {
      for (int turns = 0; turns < kTurnsMax; ++turns) {
        bool effective = once(how, Moment{at, turns}, across, seed);
        if (::testing::Test::HasFailure()) return;
        // In order, a cancel that comes later does not succeed where an earlier one was too late.
        EXPECT_FALSE(seed == 0 && effective && too_late);
        too_late = too_late || !effective;
      }
    }
  }
}
TEST_P(ProductTest, CancelledAtEverySuspension) { cancel_everywhere(once, kSeeds[0], false); }
TEST_P(ProductTest, CancelledAtEverySuspensionFromAnotherLoop) {
  cancel_everywhere(once, kSeeds[0], true);
}
TEST_P(ProductTest, CancelledAtEverySuspensionShuffled) {
  cancel_everywhere(once, kSeeds[1], false);
  cancel_everywhere(once, kSeeds[2], false);
}
TEST_P(ProductTest, CancelledAtEverySuspensionFromAnotherLoopShuffled) {
  cancel_everywhere(once, kSeeds[1], true);
  cancel_everywhere(once, kSeeds[2], true);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Subject, Place>>& info) {
  return std::get<0>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(Core, ProductTest,
                         ::testing::Combine(::testing::ValuesIn(kSubjects),
                                            ::testing::Values(Place::here)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(On, ProductTest,
                         ::testing::Combine(::testing::ValuesIn(kSubjects),
                                            ::testing::Values(Place::on)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Moved, ProductTest,
                         ::testing::Combine(::testing::ValuesIn(kSubjects),
                                            ::testing::Values(Place::moves)),
                         name_of);

}  // namespace
