// SPDX-License-Identifier: MIT
#pragma once
// The one place that knows how a coroutine frame begins: {resume, destroy, promise …}, on every
// compiler we support.
//
// Two things rest on it. A promise whose alignment is at most 16 sits 16 bytes into its frame, so
// weft turns its own promise base into a handle without knowing the promise's type. And a struct
// that begins with two function pointers can stand in for a frame, so that an awaiter of another
// library gets a std::coroutine_handle<> whose resume() is ours. frame_abi_self_test() checks both
// at start-up; it is called by the first Executor.
#include <coroutine>
#include <cstddef>

namespace weft::inline v0::detail {

inline constexpr std::ptrdiff_t kPromiseOffset = 2 * sizeof(void*);

inline std::coroutine_handle<> handle_of_promise(void* promise) noexcept {
  return std::coroutine_handle<>::from_address(static_cast<std::byte*>(promise) - kPromiseOffset);
}

// What a handle given to a foreign awaiter points to.
//
// clang calls a frame's functions with LLVM's internal calling convention. For one pointer argument
// that is the platform's own, but an optimiser that sees through the pointer would call the
// mismatch undefined and drop the code behind it; so it must not see through.
class alignas(16) ForgedFrame {
 public:
  using Function = void (*)(ForgedFrame*);
  ForgedFrame(Function resume, Function destroy) noexcept
      : resume_(hide(resume)), destroy_(hide(destroy)) {}

  [[nodiscard]] std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<>::from_address(this);
  }

 private:
  static Function hide(Function function) noexcept {
    asm volatile("" : "+r"(function));
    return function;
  }

  [[maybe_unused]] Function resume_;
  [[maybe_unused]] Function destroy_;
};

void frame_abi_self_test();

}  // namespace weft::inline v0::detail
