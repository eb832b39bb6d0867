// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SyncAwaitable<Wait, Args…>: what lock(), send() and receive() return: the description of
// a SyncAwaiter<Wait>, which a Task first tries to do without.
//
// Where a Wait has
//
//     using Now = …;                                          the result, made without a value; or
//     static Result made_of(Now);                             what it can be made of
//     static bool take_now(Strand& task, Now& into, Args…);
//
// a Task that awaits it, and is not cancelled, calls that first. If it says true that was it: the task
// does not suspend, and no waiter is made, which is most of the cost (bench: channel_one_loop). If it says
// false nothing was taken, and the SyncAwaiter does the whole. A strand that runs is at home.
#include <memory>
#include <new>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/core/await_adapter.h"
#include "weft/core/frame.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/strand.h"
#include "weft/sync/waiter.h"

namespace weft::inline v0::detail {

template <class Wait>
concept CanTakeNow = requires { typename Wait::Now; };

template <class Wait, class... Args>
class SyncAwaitable : public AwaiterDescription<SyncAwaiter<Wait>, Args...> {
  using Description = AwaiterDescription<SyncAwaiter<Wait>, Args...>;

  class InFrame {
    using Now = typename Wait::Now;
    using Adapter = AwaitAdapter<Description>;

   public:
    InFrame(SyncAwaitable& what, Strand& strand) : now_() {
      if (!strand.is_effectively_cancelled() && what.take_now(strand, now_)) [[likely]] {
        waits_ = false;
        return;
      }
      std::destroy_at(&now_);
      ::new (&adapter_) Adapter(static_cast<Description&&>(what));
      waits_ = true;
    }
    InFrame(const InFrame&) = delete;
    InFrame& operator=(const InFrame&) = delete;
    ~InFrame() {
      if (waits_) [[unlikely]]
        std::destroy_at(&adapter_);
      else
        std::destroy_at(&now_);
    }

    [[nodiscard]] bool await_ready() const noexcept { return !waits_; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) {
      return adapter_.await_suspend(handle);
    }
    AwaitResult<Description> await_resume() {
      if (waits_) [[unlikely]]
        return adapter_.await_resume();
      if constexpr (requires { Wait::made_of(now_); }) {
        return Wait::made_of(now_);
      } else {
        return std::move(now_);
      }
    }

   private:
    bool waits_;  // in front, where the rest of a wait is looked at: a cache line less
    union {
      Now now_;
      Adapter adapter_;
    };
  };

 public:
  using Description::Description;

  [[nodiscard]] InFrame await_in_frame(Frame& frame, std::source_location at) &&
    requires CanTakeNow<Wait>
  {
    Strand& strand = frame.strand();
    strand.where = at;
    return InFrame(*this, strand);
  }

 private:
  bool take_now(Strand& task, auto& into) noexcept {
    return std::apply([&](auto&... args) { return Wait::take_now(task, into, args...); },
                      this->args_);
  }
};

}  // namespace weft::inline v0::detail
