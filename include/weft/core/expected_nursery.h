// SPDX-License-Identifier: MIT
#pragma once
// weft::with_expected_nursery<E>: a nursery whose children carry their errors as values.
//
//     auto r = co_await with_expected_nursery<Error>(
//         [&](ExpectedNursery<Error>& n) -> Task<std::expected<NurseryEnd, Error>> {
//           n.start(fetch(1));             // Task<std::expected<void, Error>>
//           co_return join;
//         });                              // std::expected<void, Error>
//
// As with_nursery in everything else: the first error cancels the rest and is the result when all
// have ended. Exceptions still work, and beat errors that are values.
#include <expected>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/core/moving.h"
#include "weft/core/nursery.h"

namespace weft::inline v0 {

template <class E>
class ExpectedNursery {
 public:
  ExpectedNursery() = default;
  ExpectedNursery(const ExpectedNursery&) = delete;
  ExpectedNursery& operator=(const ExpectedNursery&) = delete;

  void start(Task<std::expected<void, E>> task) { nursery().start(watch(*this, std::move(task))); }
  void start(Task<void> task) { nursery().start(std::move(task)); }

  // Makes `error` the result, unless there is one already, and cancels the children.
  void fail(E error) {
    if (!first_) first_.emplace(std::move(error));
    nursery().cancel(reasons::sibling_failed);
  }

  // The nursery behind it: leases, cancel(), size(), start() of callables.
  [[nodiscard]] Nursery& nursery() noexcept { return *nursery_; }

  void open(Nursery& nursery) noexcept { nursery_ = &nursery; }
  // Requires: all children have ended.
  [[nodiscard]] std::expected<void, E> result() && {
    if (first_) return std::unexpected(std::move(*first_));
    return {};
  }

 private:
  static Task<void> watch(ExpectedNursery& self, Task<std::expected<void, E>> task) {
    Executor& home = Executor::current("ExpectedNursery::start()");
    std::expected<void, E> result = co_await std::move(task);
    if (result) co_return;
    if (home.is_current()) {
      self.fail(std::move(result.error()));
    } else {  // the child has moved, and the nursery has not
      co_await on(home, report(self, std::move(result.error())));
    }
  }
  static Task<void> report(ExpectedNursery& self, E error) {
    self.fail(std::move(error));
    co_return;
  }

  Nursery* nursery_ = nullptr;
  std::optional<E> first_;
};

namespace detail {

template <class E, class Fn>
Task<std::expected<void, E>> run_expected_nursery(Fn body) {
  ExpectedNursery<E> checked;  // outlives every child: the nursery joins inside this frame
  auto inner = [&](Nursery& plain) -> Task<NurseryEnd> {
    checked.open(plain);
    std::expected<NurseryEnd, E> end = co_await std::invoke(body, checked);
    if (end) co_return *end;
    checked.fail(std::move(end.error()));
    co_return NurseryEnd::cancel;
  };
  co_await with_nursery(inner);
  co_return std::move(checked).result();
}

}  // namespace detail

// Requires: body is called with an ExpectedNursery<E>& and returns Task<expected<NurseryEnd, E>>.
template <class E, class Fn>
  requires std::same_as<std::invoke_result_t<std::decay_t<Fn>&, ExpectedNursery<E>&>,
                        Task<std::expected<NurseryEnd, E>>>
[[nodiscard]] Task<std::expected<void, E>> with_expected_nursery(Fn&& body) {
  detail::check_callable<Fn>();
  return detail::run_expected_nursery<E, std::decay_t<Fn>>(std::forward<Fn>(body));
}

}  // namespace weft::inline v0
