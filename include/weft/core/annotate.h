// SPDX-License-Identifier: MIT
#pragma once
// weft::annotate(name, x): x, with a name in the task tree. The name must outlive the wait.
#include <utility>

#include "weft/core/forwarded_awaiter.h"
#include "weft/core/invoked.h"

namespace weft::inline v0 {

namespace detail {

template <class A>
class AnnotatedAwaiter final : public ForwardedAwaiter<A> {
 public:
  AnnotatedAwaiter(const char* name, A&& awaitable)
      : ForwardedAwaiter<A>(std::forward<A>(awaitable)), name_(name) {}
  void await_introspect(auto& tree) noexcept {
    tree.annotate(name_);
    tree.child(this->inner());
  }

 private:
  const char* name_;
};

template <class A>
class Annotated {
 public:
  Annotated(const char* name, A&& awaitable)
      : name_(name), awaitable_(std::forward<A>(awaitable)) {}
  AnnotatedAwaiter<A> operator co_await() && {
    return AnnotatedAwaiter<A>(name_, std::forward<A>(awaitable_));
  }

 private:
  const char* name_;
  A awaitable_;
};

}  // namespace detail

template <AwaitableOrCallable A>
[[nodiscard]] auto annotate(const char* name, A&& awaitable) {
  return detail::Annotated<detail::AsAwaitable<A>>(
      name, detail::as_awaitable(std::forward<A>(awaitable)));
}

}  // namespace weft::inline v0
