// SPDX-License-Identifier: MIT
#pragma once
// weft::parallel_for, parallel_transform, parallel_reduce: one function over many elements, on all
// workers of the IOContext, awaited as one.
//
//     co_await parallel_for(images, blur);                               // each element, a reference
//     co_await parallel_for(0, 1'000'000, step, {.grain = 10'000});       // each number
//     std::vector<Hash> hashes = co_await parallel_transform(files, hash);      // in order
//     double sum = co_await parallel_reduce(samples, 0.0, std::plus<>());
//
// The function is plain, or returns a Task (or any awaitable). Elements are handed out in blocks of
// `grain`, first come, first served, to as many tasks as there are workers: slow elements and busy
// workers do no harm, and memory does not grow with the range. Between two blocks a worker sees to
// its other tasks, and I/O.
//
// On a loop that is nobody's worker all of it runs there, in turn with others.
//
// Threads        await it on any loop. The function is one object, called on several threads at
//                once; no two calls get the same element. The function is copied, or moved, to
//                where it is called; the range is kept if it is a temporary, else referred to.
// Order          parallel_for: none. parallel_transform: the results stand as the elements do.
//                parallel_reduce: combine must be associative, need not be commutative; how elements
//                are grouped depends on nothing but `grain`, and, where that is 0, on the number of
//                workers.
// Cancellation   a cancel point on every call, also over an empty range, and before each element.
//                Returns when no call runs any more.
// Errors         the first that the function throws; no further element is begun, and those under
//                way are cancelled where they await.
// Allocation     a frame for each task; the results; for reduce one value per block.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/atomic/atomic.h"
#include "weft/core/concepts.h"
#include "weft/core/invoked.h"
#include "weft/core/nursery.h"
#include "weft/core/primitives.h"
#include "weft/core/task.h"

namespace weft::inline v0 {

struct ParallelOptions {
  std::size_t grain = 0;  // elements per block; 0: as many as give each task some blocks
  std::size_t tasks = 0;  // at most so many at once; 0: one per worker
};

namespace detail {

// How many elements, in what blocks, by how many tasks; and the next one to be handed out.
class ParallelWork {
 public:
  static constexpr std::size_t kBlocksPerTask = 8;  // so that who is done early finds more
  static constexpr std::size_t kGrainMax = 1024;    // so that others get their turn

  // Requires: called on the loop that will await it.
  ParallelWork(std::size_t size, const ParallelOptions& options);

  struct Block {
    std::size_t number;
    std::size_t begin;
    std::size_t end;
  };
  // Any thread. relaxed: the elements were published when the tasks were started.
  [[nodiscard]] std::optional<Block> take() noexcept {
    std::size_t number = next_.fetch_add(1, relaxed);
    if (number >= blocks_) return std::nullopt;
    std::size_t begin = number * grain_;
    return Block{number, begin, std::min(begin + grain_, size_)};
  }
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::size_t tasks() const noexcept { return tasks_; }
  // Whether there are workers to schedule on.
  [[nodiscard]] bool spreads() const noexcept { return spreads_; }

 private:
  std::size_t size_;
  std::size_t tasks_;
  std::size_t grain_;
  std::size_t blocks_;
  bool spreads_;
  Atomic<std::size_t> next_{0};
};

// Starts work.tasks() tasks, each made by `make()`, and waits for them.
template <class Make>
Task<void> run_parallel(ParallelWork& work, Make& make) {
  co_await finish_if_cancelled();
  if (work.blocks() == 0) co_return;
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (std::size_t i = 0; i < work.tasks(); ++i) {
      if (work.spreads()) {
        nursery.schedule(make());
      } else {
        nursery.start(make());
      }
    }
    co_return join;
  };
  co_await with_nursery(body);
}

// Calls each(i) for every element, and awaits what that returns, if it can be awaited.
template <class Each>
Task<void> do_blocks(ParallelWork& work, Each& each) {
  while (std::optional<ParallelWork::Block> block = work.take()) {
    for (std::size_t i = block->begin; i < block->end; ++i) {
      co_await finish_if_cancelled();
      if constexpr (Awaitable<std::invoke_result_t<Each&, std::size_t>>) {
        static_cast<void>(co_await each(i));
      } else {
        static_cast<void>(each(i));
      }
    }
    co_await yield();
  }
}

template <class R>
concept ParallelRange = std::ranges::random_access_range<R> && std::ranges::sized_range<R>;

// What fn makes of an argument, awaited.
template <class Fn, class Arg>
struct Outcomes {
  using type = std::invoke_result_t<Fn&, Arg>;
};
template <class Fn, class Arg>
  requires Awaitable<std::invoke_result_t<Fn&, Arg>>
struct Outcomes<Fn, Arg> {
  using type = AwaitResult<std::invoke_result_t<Fn&, Arg>>;
};
template <class Fn, class Arg>
using Made = std::remove_cvref_t<typename Outcomes<Fn, Arg>::type>;

template <class View, class Fn>
Task<void> for_each(View view, Fn fn, ParallelOptions options) {
  ParallelWork work(static_cast<std::size_t>(std::ranges::size(view)), options);
  auto first = std::ranges::begin(view);
  using Difference = std::iter_difference_t<decltype(first)>;
  using Element = std::ranges::range_reference_t<View>;
  auto each = [&](std::size_t i) {
    if constexpr (Awaitable<std::invoke_result_t<Fn&, Element>>) {
      return std::invoke(fn, first[static_cast<Difference>(i)]);
    } else {
      static_cast<void>(std::invoke(fn, first[static_cast<Difference>(i)]));
    }
  };
  auto make = [&] { return do_blocks(work, each); };
  co_await run_parallel(work, make);
}

// Results are built where they stay, if they can wait there as default values. (Not bool: bits of
// one word cannot be written by two threads.)
template <class T>
inline constexpr bool kBuiltInPlace =
    std::default_initializable<T> && std::is_move_assignable_v<T> && !std::same_as<T, bool>;
template <class T>
using TransformSlot = std::conditional_t<kBuiltInPlace<T>, T, std::optional<T>>;

template <class A, class Slot>
Task<void> fill_slot(A awaitable, Slot& slot) {
  slot = co_await std::move(awaitable);
}

template <class T, class View, class Fn>
Task<std::vector<T>> transform(View view, Fn fn, ParallelOptions options) {
  ParallelWork work(static_cast<std::size_t>(std::ranges::size(view)), options);
  std::vector<TransformSlot<T>> places(static_cast<std::size_t>(std::ranges::size(view)));
  auto first = std::ranges::begin(view);
  using Element = std::ranges::range_reference_t<View>;
  using Difference = std::iter_difference_t<decltype(first)>;
  auto each = [&](std::size_t i) {
    if constexpr (Awaitable<std::invoke_result_t<Fn&, Element>>) {
      return fill_slot(std::invoke(fn, first[static_cast<Difference>(i)]), places[i]);
    } else {
      places[i] = std::invoke(fn, first[static_cast<Difference>(i)]);
    }
  };
  auto make = [&] { return do_blocks(work, each); };
  co_await run_parallel(work, make);
  if constexpr (kBuiltInPlace<T>) {
    co_return places;
  } else {
    std::vector<T> results;
    results.reserve(places.size());
    for (std::optional<T>& slot : places) results.push_back(std::move(*slot));
    co_return results;
  }
}

// Adds each block up by itself, from its first element on.
template <class T, class Each, class Combine>
Task<void> reduce_blocks(ParallelWork& work, std::vector<std::optional<T>>& partial, Each& each,
                         Combine& combine) {
  while (std::optional<ParallelWork::Block> block = work.take()) {
    std::optional<T> sum;
    for (std::size_t i = block->begin; i < block->end; ++i) {
      co_await finish_if_cancelled();
      if constexpr (Awaitable<std::invoke_result_t<Each&, std::size_t>>) {
        T value = co_await each(i);
        if (sum) {
          sum = std::invoke(combine, std::move(*sum), std::move(value));
        } else {
          sum.emplace(std::move(value));
        }
      } else if (sum) {
        sum = std::invoke(combine, std::move(*sum), each(i));
      } else {
        sum.emplace(each(i));
      }
    }
    partial[block->number] = std::move(sum);
    co_await yield();
  }
}

// The blocks, in order, after `init`.
template <class T, class View, class Combine, class Fn>
Task<T> reduce(View view, T init, Combine combine, Fn fn, ParallelOptions options) {
  ParallelWork work(static_cast<std::size_t>(std::ranges::size(view)), options);
  std::vector<std::optional<T>> partial(work.blocks());
  auto first = std::ranges::begin(view);
  using Difference = std::iter_difference_t<decltype(first)>;
  // By value: what fn returns may refer to an element that is a temporary itself.
  auto each = [&](std::size_t i) { return std::invoke(fn, first[static_cast<Difference>(i)]); };
  auto make = [&] { return reduce_blocks(work, partial, each, combine); };
  co_await run_parallel(work, make);
  for (std::optional<T>& each : partial) {
    init = std::invoke(combine, std::move(init), std::move(*each));
  }
  co_return init;
}

}  // namespace detail

// Every element of a range that has a size and can be indexed.
template <detail::ParallelRange R, class Fn>
  requires std::invocable<std::decay_t<Fn>&, std::ranges::range_reference_t<R>>
[[nodiscard]] Task<void> parallel_for(R&& range, Fn&& fn, ParallelOptions options = {}) {
  detail::check_callable<Fn>();
  using View = std::views::all_t<R>;
  using Kept = detail::KeptFunction<Fn>;
  return detail::for_each<View, Kept>(std::views::all(std::forward<R>(range)),
                                      static_cast<Kept>(std::forward<Fn>(fn)), options);
}
// Every number from `begin` to before `end`.
template <std::integral I, class Fn>
  requires std::invocable<std::decay_t<Fn>&, I>
[[nodiscard]] Task<void> parallel_for(I begin, std::type_identity_t<I> end, Fn&& fn,
                                      ParallelOptions options = {}) {
  return parallel_for(std::views::iota(begin, std::max(begin, end)), std::forward<Fn>(fn), options);
}

// Returns: fn(element) for each, in the order of the range.
template <detail::ParallelRange R, class Fn>
  requires std::invocable<std::decay_t<Fn>&, std::ranges::range_reference_t<R>>
[[nodiscard]] auto parallel_transform(R&& range, Fn&& fn, ParallelOptions options = {})
    -> Task<std::vector<detail::Made<std::decay_t<Fn>, std::ranges::range_reference_t<R>>>> {
  detail::check_callable<Fn>();
  using View = std::views::all_t<R>;
  using Kept = detail::KeptFunction<Fn>;
  using T = detail::Made<std::decay_t<Fn>, std::ranges::range_reference_t<R>>;
  static_assert(!std::is_void_v<T>,
                "weft: parallel_transform() collects what the function returns, and this one "
                "returns nothing: take parallel_for()");
  return detail::transform<T, View, Kept>(std::views::all(std::forward<R>(range)),
                                          static_cast<Kept>(std::forward<Fn>(fn)), options);
}

// Returns: combine(combine(init, a), b)… over the elements, or over fn(element), grouped anyhow.
template <detail::ParallelRange R, class T, class Combine, class Fn = std::identity>
  requires std::invocable<std::decay_t<Fn>&, std::ranges::range_reference_t<R>>
[[nodiscard]] Task<std::decay_t<T>> parallel_reduce(R&& range, T&& init, Combine&& combine,
                                                    Fn&& fn = Fn(), ParallelOptions options = {}) {
  detail::check_callable<Combine>();
  detail::check_callable<Fn>();
  using View = std::views::all_t<R>;
  using KeptCombine = detail::KeptFunction<Combine>;
  using Kept = detail::KeptFunction<Fn>;
  return detail::reduce<std::decay_t<T>, View, KeptCombine, Kept>(
      std::views::all(std::forward<R>(range)), std::forward<T>(init),
      static_cast<KeptCombine>(std::forward<Combine>(combine)),
      static_cast<Kept>(std::forward<Fn>(fn)), options);
}

}  // namespace weft::inline v0
