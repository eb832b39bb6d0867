// SPDX-License-Identifier: MIT
#include "weft/core/make_awaitable.h"

#include <memory>
#include <stdexcept>
#include <type_traits>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using weft::testing::VirtualLoop;

// Someone else's awaiter, which must stay where it is: it is called back at its address.
class Operation {
 public:
  Operation(std::unique_ptr<int> value, int& count) : value_(std::move(value)), count_(count) {
    ++count_;
  }
  Operation(Operation&&) = delete;
  ~Operation() {
    --count_;
    if (pending == this) pending = nullptr;
  }

  static bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    pending = this;
  }
  int await_resume() {
    if (*value_ < 0) throw std::runtime_error("negative");
    return *value_;
  }
  std::true_type await_cancel(std::coroutine_handle<>) noexcept {
    pending = nullptr;
    return {};
  }

  static void complete() {
    if (pending) std::exchange(pending, nullptr)->handle_.resume();
  }
  static inline Operation* pending = nullptr;

 private:
  std::unique_ptr<int> value_;
  int& count_;
  std::coroutine_handle<> handle_;
};
static_assert(!std::is_move_constructible_v<Operation>);

Awaitable<int> auto operation(int value, int& count) {
  return make_awaitable<Operation>(std::make_unique<int>(value), std::ref(count));
}
using Described = decltype(operation(1, std::declval<int&>()));
static_assert(std::is_move_constructible_v<Described>);
static_assert(Skippable<Described> && Abortable<Described>);
static_assert(Skippable<decltype(annotate("x", disposable(std::declval<Described>())))>);
static_assert(!Abortable<decltype(annotate("x", std::declval<Described>()))>,
              "another thread may have resumed it already, and then its result is delivered");

struct MakeAwaitableTest : LoopTest<VirtualLoop> {
  int count = 0;
  template <class Fn>
  auto completing(Fn subject) {
    auto root = [&]() -> Task<int> {
      auto completes = []() -> Task<void> {
        co_await sleep_for(1ms);
        Operation::complete();
      };
      StartedTask<void> other = completes().start_in_current_scope();
      int value = co_await subject();
      co_await std::move(other);
      co_return value;
    };
    int value = run(loop, root());
    EXPECT_EQ(count, 0);
    return value;
  }
};

TEST_F(MakeAwaitableTest, TheAwaiterIsBuiltInPlaceWhenItIsAwaited) {
  auto description = operation(4, count);
  auto moved = std::move(description);
  EXPECT_EQ(count, 0);
  auto subject = [&]() -> Task<int> { co_return co_await std::move(moved); };
  EXPECT_EQ(completing(subject), 4);
}

TEST_F(MakeAwaitableTest, ImmovableAwaitersNestThreeDeep) {
  auto subject = [&]() -> Task<int> {
    auto next = [](auto& result) { return just(std::get<0>(*result).value()); };
    auto [value, never] = co_await any_of(
        annotate("outer", timeout(1h, most_of(noncancellable(operation(5, count)))) | then(next)),
        suspend_forever());
    co_return value.value();
  };
  EXPECT_EQ(completing(subject), 5);
}

TEST_F(MakeAwaitableTest, CancelReachesAnAwaiterThreeDeep) {
  auto root = [&]() -> Task<void> {
    auto [slow, quick] = co_await any_of(
        annotate("outer", timeout(1h, all_of(disposable(operation(5, count)), noop()))),
        sleep_for(1ms));
    EXPECT_FALSE(slow);
    EXPECT_EQ(Operation::pending, nullptr);
  };
  run(loop, root());
  EXPECT_EQ(count, 0);
}

TEST_F(MakeAwaitableTest, ErrorsPass) {
  auto subject = [&]() -> Task<int> {
    auto both = co_await all_of(annotate("outer", timeout(1h, operation(-1, count))));
    co_return std::get<0>(both.value());
  };
  EXPECT_THROW(completing(subject), std::runtime_error);
}

TEST_F(MakeAwaitableTest, ADescriptionThatIsNeverAwaitedBuildsNothing) {
  {
    auto unused = operation(1, count);
    auto nested = all_of(std::move(unused), suspend_forever());
    static_cast<void>(nested);
  }
  EXPECT_EQ(count, 0);
}

}  // namespace
