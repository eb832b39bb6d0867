// SPDX-License-Identifier: MIT
#pragma once
// A wait that the test itself ends: another task, or the test between turns, decides when and how.
#include <coroutine>
#include <utility>

namespace weft::test {

// A plain C++20 awaiter, resumed by fire(). Not cancellable.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) noexcept { handle_ = handle; }
  void await_resume() const noexcept {}

  [[nodiscard]] bool waiting() const noexcept { return handle_ != nullptr; }
  void fire() { std::exchange(handle_, nullptr).resume(); }

 private:
  std::coroutine_handle<> handle_ = nullptr;
};

}  // namespace weft::test
