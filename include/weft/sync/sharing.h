// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::BetweenLoops, OnOneLoop: how the cores of sync/ are guarded, as a parameter of theirs, so
// that a Local form is the same code without atomic operations.
//
//     Word<T>         what is changed without a lock
//     Mutex, Lock     what guards the rest
//     Gap             lies between what two loops write
//     LoopBond        refuses loops that must not use it
#include <cstddef>
#include <cstdint>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

struct BetweenLoops {
  static constexpr bool kIsLocal = false;
  template <class T>
  using Word = Atomic<T>;
  using Mutex = StateMutex;
  using Lock = StateLock;
  // Bytes, and no alignas: g++ 12 does not align the frames of coroutines.
  struct Gap {
    std::byte cache_line[64];
  };

  class LoopBond {
   public:
    static constexpr void require(std::uint32_t, const char*) noexcept {}
    [[nodiscard]] static constexpr bool admits(std::uint32_t) noexcept { return true; }
  };
};

// Nothing is atomic, so the order of an operation has no meaning. Tasks of a loop take turns at awaits.
struct OnOneLoop {
  static constexpr bool kIsLocal = true;
  template <class T>
  class Word {
   public:
    explicit(false) Word(T value) noexcept : value_(value) {}
    T load(auto) const noexcept { return value_; }
    void store(T value, auto) noexcept { value_ = value; }
    bool compare_exchange_strong(T& expected, T desired, auto, auto) noexcept {
      if (value_ != expected) return expected = value_, false;
      return value_ = desired, true;
    }
    bool compare_exchange_weak(T& expected, T desired, auto success, auto failure) noexcept {
      return compare_exchange_strong(expected, desired, success, failure);
    }

   private:
    T value_;
  };

  class Mutex {};
  class Lock {
   public:
    explicit Lock(Mutex&) noexcept {}
    ~Lock() {}  // not trivial: a lock that is not named otherwise is meant
  };
  struct Gap {};

  // The first loop that uses it is the only one. Off any loop (home 0) it may be used until then.
  class LoopBond {
   public:
    // Ends the process if another loop uses it, with a message that begins with `what`.
    void require(std::uint32_t home, const char* what) noexcept {
      if (home != home_) [[unlikely]]
        bind(home, what);
    }
    // Whether this loop may look at it. Requires: it was used, and the caller knows of that.
    [[nodiscard]] bool admits(std::uint32_t home) const noexcept { return home == home_; }

   private:
    void bind(std::uint32_t home, const char* what) noexcept;

    std::uint32_t home_ = 0;
  };
};

}  // namespace weft::inline v0::detail
