// SPDX-License-Identifier: MIT
#pragma once
// weft::all_of, any_of, most_of: several awaitables at once. For packs and for ranges.
//
//     auto [a, b] = co_await all_of(x(), y());           // tuple of results; needs both
//     auto [a, b] = co_await any_of(x(), y());           // tuple of optionals; the first ends it
//     auto first  = co_await any_of(x(), y());           // the same; first.index() says which that was
//     auto [a, b] = co_await most_of(x(), y());          // tuple of optionals; waits for both
//     auto many   = co_await all_of(std::move(tasks));   // vector of results
//
// any_of gives an AnyOfResult: who lost may have a value as well, if its cancel came too late.
//
// A void result is std::monostate, a reference a pointer. Branches start in argument order. An
// argument may be a callable that returns an awaitable; it is kept alive.
//
// Cancellation   passed to every branch. all_of drops finished values; any_of and most_of deliver
//                what there is. A branch that ends cancelled unasked has no value: all_of then ends
//                so too, as do the others when no branch has one.
// Errors         the first error cancels the other branches and is rethrown when all have ended;
//                other_errors() has the rest. Where every branch returns std::expected with one
//                error type, an unexpected value counts as an error, and the result is a
//                std::expected around the above.
// Allocation     none for packs; one block for a range.
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/core/any_of_result.h"
#include "weft/core/combinator.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

namespace detail {

// std::expected<T, E> taken apart; anything else is a value that cannot fail.
template <class R>
struct Split {
  using value = Storable<R>;
  using error = void;
};
template <class T, class E>
struct Split<std::expected<T, E>> {
  using value = Storable<T>;
  using error = E;
};

// The common error type if every result is a std::expected with that one, else void.
template <class... R>
struct CommonError {
  using type = void;
};
template <class T, class E, class... R>
  requires(std::same_as<typename Split<R>::error, E> && ...)
struct CommonError<std::expected<T, E>, R...> {
  using type = E;
};

// A branch and what it produced. E: the error type that results carry as values, or void.
template <class A, class E>
class BranchSlot {
 public:
  using Result = typename Branch<A>::Result;
  using Value =
      std::conditional_t<std::is_void_v<E>, Storable<Result>, typename Split<Result>::value>;

  explicit BranchSlot(A&& awaitable) : branch_(std::forward<A>(awaitable)) {}

  BranchBase& branch() noexcept { return branch_; }
  Branch<A>& typed_branch() noexcept { return branch_; }
  [[nodiscard]] const CaughtError& error() const noexcept { return error_; }

  Combinator::Collected collect() noexcept {
    try {
      stored_.emplace(store<Result>([&]() -> decltype(auto) { return branch_.take(); }));
    } catch (...) {
      error_ = CaughtError::current();
      return Combinator::Collected::error;
    }
    if constexpr (!std::is_void_v<E>) {
      if (!stored_->has_value()) return Combinator::Collected::failed_value;
    }
    return Combinator::Collected::value;
  }

  // Requires: it has a value.
  Value value() {
    if constexpr (std::is_void_v<E>) {
      return std::move(*stored_);
    } else if constexpr (std::is_void_v<typename Result::value_type>) {
      return {};
    } else {
      return std::move(**stored_);
    }
  }
  std::optional<Value> maybe() {
    if (!stored_) return std::nullopt;
    if constexpr (!std::is_void_v<E>) {
      if (!stored_->has_value()) return std::nullopt;
    }
    return value();
  }
  // The result as the awaitable gave it. Requires: there is one.
  Result result() {
    if constexpr (std::is_reference_v<Result>) {
      return static_cast<Result>(**stored_);
    } else if constexpr (!std::is_void_v<Result>) {
      return std::move(*stored_);
    }
  }
  auto failure() {
    if constexpr (!std::is_void_v<E>) return std::move(stored_->error());
  }

 private:
  Branch<A> branch_;
  std::optional<Storable<Result>> stored_;
  CaughtError error_;
};

// What is there at the end, around the values or optionals.
template <Combinator::Kind K, class Values>
using Gathered = std::conditional_t<K == Combinator::Kind::any, AnyOfResult<Values>, Values>;

template <class Value, class E>
using MaybeExpected = std::conditional_t<std::is_void_v<E>, Value, std::expected<Value, E>>;

// The static answers of a combinator's hooks. A cancel ends it at once only if it ends every branch
// at once, and only if finished values are not kept.
template <Combinator::Kind K, class... A>
class CombinatorHooks : public Combinator {
  static constexpr bool kAllSkippable = (kBranchSkippable<A> && ...);
  static constexpr bool kAllAbortable = (kBranchAbortable<A> && ...) && K != Kind::most;

 protected:
  CombinatorHooks() noexcept : Combinator(K) {}
  bool early_ = false;

 public:
  static constexpr bool await_ready() noexcept { return false; }
  auto await_early_cancel() noexcept {
    if constexpr (kAllSkippable) {
      return std::true_type{};
    } else {
      early_ = true;
      return std::false_type{};
    }
  }
  bool await_suspend(Continuation waiter) noexcept { return start(waiter, early_); }
  auto await_cancel(Continuation) noexcept {
    if constexpr (kAllSkippable && kAllAbortable) {
      cancel();
      return std::true_type{};
    } else {
      return cancel();
    }
  }
  [[nodiscard]] auto await_must_resume() const noexcept {
    if constexpr (kAllSkippable && kAllAbortable) {
      return std::false_type{};
    } else {
      return deliverable();
    }
  }
};

// --- Packs --------------------------------------------------------------------------------------

// Immovable slots side by side, each built in place.
template <std::size_t I, class A, class E>
struct PackLeaf {
  explicit PackLeaf(A&& awaitable) : slot(std::forward<A>(awaitable)) {}
  BranchSlot<A, E> slot;
};

template <Combinator::Kind K, class Indices, class... A>
class PackAwaiter;

template <Combinator::Kind K, std::size_t... I, class... A>
class PackAwaiter<K, std::index_sequence<I...>, A...>
    : public CombinatorHooks<K, A...>,
      protected PackLeaf<I, A, typename CommonError<typename Branch<A>::Result...>::type>... {
  using E = typename CommonError<typename Branch<A>::Result...>::type;
  using Collected = Combinator::Collected;
  template <std::size_t N, class X>
  using Leaf = PackLeaf<N, X, E>;

 public:
  explicit PackAwaiter(A&&... awaitables) : Leaf<I, A>(std::forward<A>(awaitables))... {}

  auto await_resume() {
    this->check_errors();
    if constexpr (!std::is_void_v<E>) {
      if (this->first_failed() != Combinator::kNone) return failed(result_type());
    }
    return result_type()(values());
  }
  void await_introspect(auto& tree) noexcept {
    constexpr const char* kNames[] = {"all_of", "any_of", "most_of", "with"};
    tree.node(kNames[static_cast<int>(K)]);
    (tree.child(Leaf<I, A>::slot.typed_branch().awaiter()), ...);
  }

 private:
  static constexpr bool kAll = K == Combinator::Kind::all;
  using Values =
      Gathered<K,
               std::conditional_t<kAll, std::tuple<typename BranchSlot<A, E>::Value...>,
                                  std::tuple<std::optional<typename BranchSlot<A, E>::Value>...>>>;
  struct Wrap {
    using type = MaybeExpected<Values, E>;
    type operator()(Values&& values) const { return type(std::move(values)); }
  };
  static Wrap result_type() noexcept { return {}; }

  Values values() {
    if constexpr (kAll) {
      return Values(Leaf<I, A>::slot.value()...);
    } else if constexpr (K == Combinator::Kind::any) {
      return Values(this->winner(), Leaf<I, A>::slot.maybe()...);
    } else {
      return Values(Leaf<I, A>::slot.maybe()...);
    }
  }
  typename Wrap::type failed(Wrap) {
    std::optional<E> error;
    ((I == this->first_failed() ? static_cast<void>(error.emplace(Leaf<I, A>::slot.failure()))
                                : static_cast<void>(0)),
     ...);
    return std::unexpected(std::move(*error));
  }

  [[nodiscard]] std::size_t count() const noexcept override { return sizeof...(A); }
  [[nodiscard]] BranchBase& at(std::size_t index) noexcept override {
    BranchBase* found = nullptr;
    ((I == index ? static_cast<void>(found = &Leaf<I, A>::slot.branch()) : static_cast<void>(0)),
     ...);
    return *found;
  }
  Collected collect(std::size_t index) noexcept override {
    Collected result = Collected::value;
    ((I == index ? static_cast<void>(result = Leaf<I, A>::slot.collect()) : static_cast<void>(0)),
     ...);
    return result;
  }
  [[nodiscard]] CaughtError error_at(std::size_t index) noexcept override {
    CaughtError result;
    ((I == index ? static_cast<void>(result = Leaf<I, A>::slot.error()) : static_cast<void>(0)),
     ...);
    return result;
  }
};

template <Combinator::Kind K, class... A>
class Pack {
 public:
  explicit Pack(A&&... awaitables) : awaitables_(std::forward<A>(awaitables)...) {}
  auto operator co_await() && {
    return std::apply(
        [](auto&&... each) {
          return PackAwaiter<K, std::index_sequence_for<A...>, A...>(
              std::forward<decltype(each)>(each)...);
        },
        std::move(awaitables_));
  }

 private:
  std::tuple<A...> awaitables_;
};

// --- Ranges -------------------------------------------------------------------------------------

template <Combinator::Kind K, class A>
class RangeAwaiter final : public CombinatorHooks<K, A> {
  using E = typename CommonError<typename Branch<A>::Result>::type;
  using Slot = BranchSlot<A, E>;
  using Collected = Combinator::Collected;
  static constexpr bool kAll = K == Combinator::Kind::all;
  using Values = std::vector<
      std::conditional_t<kAll, typename Slot::Value, std::optional<typename Slot::Value>>>;

 public:
  explicit RangeAwaiter(std::vector<A>&& awaitables) : slots_(awaitables.size()) {
    for (A& each : awaitables) slots_.add(std::move(each));
  }

  MaybeExpected<Gathered<K, Values>, E> await_resume() {
    this->check_errors();
    if constexpr (!std::is_void_v<E>) {
      if (this->first_failed() != Combinator::kNone) {
        return std::unexpected(slots_[this->first_failed()].failure());
      }
    }
    Values values;
    values.reserve(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if constexpr (kAll) {
        values.push_back(slots_[i].value());
      } else {
        values.push_back(slots_[i].maybe());
      }
    }
    if constexpr (K == Combinator::Kind::any) {
      return Gathered<K, Values>(this->winner(), std::move(values));
    } else {
      return values;
    }
  }
  void await_introspect(auto& tree) noexcept {
    constexpr const char* kNames[] = {"all_of", "any_of", "most_of"};
    tree.node(kNames[static_cast<int>(K)]);
    for (std::size_t i = 0; i < slots_.size(); ++i) tree.child(slots_[i].typed_branch().awaiter());
  }

 private:
  // One block of immovable slots.
  class Slots {
   public:
    explicit Slots(std::size_t capacity)
        : memory_(capacity ? std::allocator<Slot>().allocate(capacity) : nullptr),
          capacity_(capacity) {}
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;
    ~Slots() {
      std::destroy_n(memory_, size_);
      if (memory_) std::allocator<Slot>().deallocate(memory_, capacity_);
    }
    void add(A&& awaitable) {
      std::construct_at(memory_ + size_, std::move(awaitable));
      ++size_;
    }
    Slot& operator[](std::size_t i) noexcept { return memory_[i]; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

   private:
    Slot* memory_;
    std::size_t capacity_;
    std::size_t size_ = 0;
  };

  [[nodiscard]] std::size_t count() const noexcept override { return slots_.size(); }
  [[nodiscard]] BranchBase& at(std::size_t index) noexcept override {
    return slots_[index].branch();
  }
  Collected collect(std::size_t index) noexcept override { return slots_[index].collect(); }
  [[nodiscard]] CaughtError error_at(std::size_t index) noexcept override {
    return slots_[index].error();
  }

  Slots slots_;
};

template <Combinator::Kind K, class A>
class Range {
 public:
  explicit Range(std::vector<A>&& awaitables) : awaitables_(std::move(awaitables)) {}
  RangeAwaiter<K, A> operator co_await() && { return RangeAwaiter<K, A>(std::move(awaitables_)); }

 private:
  std::vector<A> awaitables_;
};

template <class R>
concept AwaitableRange = std::ranges::input_range<R> && !Awaitable<R> &&
                         AwaitableOrCallable<std::ranges::range_value_t<R>>;

template <Combinator::Kind K, class... A>
auto make_pack(A&&... awaitables) {
  return Pack<K, AsAwaitable<A>...>(as_awaitable(std::forward<A>(awaitables))...);
}
template <Combinator::Kind K, class R>
auto make_range(R&& range) {
  using A = AsAwaitable<std::ranges::range_value_t<R>>;
  if constexpr (std::same_as<std::remove_cvref_t<R>, std::vector<A>> &&
                !std::is_lvalue_reference_v<R>) {
    return Range<K, A>(std::move(range));
  } else {
    std::vector<A> awaitables;
    for (auto&& each : range) awaitables.push_back(as_awaitable_unchecked(std::move(each)));
    return Range<K, A>(std::move(awaitables));
  }
}

template <Combinator::Kind K>
struct Combine {
  template <AwaitableOrCallable... A>
  [[nodiscard]] auto operator()(A&&... awaitables) const {
    return make_pack<K>(std::forward<A>(awaitables)...);
  }
  // A range of awaitables of one type; they are moved out of it.
  template <AwaitableRange R>
  [[nodiscard]] auto operator()(R&& range) const {
    return make_range<K>(std::forward<R>(range));
  }
};

}  // namespace detail

// Objects, as those of std::ranges: of three Task<std::string>, a function of this name would be looked
// for in std, too, and std::all_of(first, last, predicate) be found.
inline constexpr detail::Combine<detail::Combinator::Kind::all> all_of{};
inline constexpr detail::Combine<detail::Combinator::Kind::any> any_of{};
inline constexpr detail::Combine<detail::Combinator::Kind::most> most_of{};

}  // namespace weft::inline v0
