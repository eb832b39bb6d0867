// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Frame: the base of every Task's promise. A scope, plus the way back.
//
// A frame is either the first of its strand or awaited in line by the frame above it. The first has
// its strand in front of it. For the others the awaiter in the frame above, an InlineSlot, says
// whose strand it is, who waits and where the result goes.
#include <cstdint>
#include <exception>
#include <source_location>
#include <utility>

#include "weft/core/frame_abi.h"
#include "weft/core/scope.h"

namespace weft::inline v0::detail {

class LocalValue;

// The awaiter of a Task awaited in line, as the child sees it.
//
// Stores are what an await costs, so nothing is set before it means something.
struct InlineSlot {
  Strand* strand;  // these two once the child has begun
  Frame* parent;
  Frame* child;
  std::source_location where;
  union {
    std::exception_ptr error;  // if the child has failed
  };

  InlineSlot(Frame* awaited, std::source_location at) noexcept : child(awaited), where(at) {}
  InlineSlot(const InlineSlot&) = delete;
  InlineSlot& operator=(const InlineSlot&) = delete;
  ~InlineSlot() {}

  // Destroys the child and throws its error. Requires: it has failed.
  [[noreturn, gnu::cold]] void rethrow();
};

class Frame : public Scope {
 public:
  [[nodiscard]] Strand& strand() const noexcept {
    return is_first() ? *std::launder(static_cast<Strand*>(strand_bytes())) : *inline_slot().strand;
  }
  [[nodiscard]] bool is_first() const noexcept { return slot_ & kFirst; }
  [[nodiscard]] bool failed() const noexcept { return flags_ & kFailed; }
  [[nodiscard]] bool is_started() const noexcept { return slot_ != 0; }
  [[nodiscard]] InlineSlot& inline_slot() const noexcept {
    return *reinterpret_cast<InlineSlot*>(slot_);
  }
  [[nodiscard]] Frame* parent() const noexcept {
    return is_first() ? nullptr : inline_slot().parent;
  }

  void attach_inline(InlineSlot& slot) noexcept { slot_ = reinterpret_cast<std::uintptr_t>(&slot); }
  void attach_first(LocalValue* locals) noexcept {
    slot_ = reinterpret_cast<std::uintptr_t>(locals) | kFirst;
  }
  // Out of every strand, as before it began: a generator at its co_yield. Requires: not first.
  void detach() noexcept { slot_ = 0; }
  // Nothing ties the frame to the strand that it is in: no child, node or lease, no ignore guard.
  [[nodiscard]] bool is_untied() const noexcept {
    return topology_.empty() && leases_.settled() && ignore_depth_ == 0;
  }
  // The strand's task-local bindings, innermost first. They lie in the first frame, which needs no
  // pointer to its strand. Requires: is_first().
  [[nodiscard]] LocalValue* locals() const noexcept {
    return reinterpret_cast<LocalValue*>(slot_ & ~kFirst);
  }

  [[nodiscard]] std::coroutine_handle<> handle() noexcept { return handle_of_promise(this); }
  // Whether a frame that was just destroyed was a strand's first. Its bytes are as they were; the
  // detour keeps the compiler from reasoning that they are nobody's.
  [[nodiscard]] static bool was_first(void* frame) noexcept {
    auto* promise = static_cast<std::byte*>(frame) + kPromiseOffset;
    asm volatile("" : "+r"(promise) : : "memory");
    return reinterpret_cast<Frame*>(promise)->is_first();
  }
  // The strand bytes in front of this frame. Requires: the frame was allocated by its promise's
  // operator new.
  [[nodiscard]] void* strand_bytes() const noexcept {
    auto* promise = reinterpret_cast<std::byte*>(const_cast<Frame*>(this));
    return promise - (kPromiseOffset + std::ptrdiff_t{sizeof(Strand)});
  }

  // The coroutine ends, and there is nothing to join, nor an error of a child that ended before
  // (L14): the common case, which must stay a few instructions.
  [[nodiscard]] bool nothing_to_join() const noexcept {
    return !(flags_ & (kHadMembers | kHasErrors | kErrorsLost));
  }
  void mark_done() noexcept { phase_ = Phase::done; }
  // An error with others was thrown into this very frame, not one that lay here before.
  [[nodiscard]] bool was_thrown_into() const noexcept { return flags_ & kThrownInto; }
  void mark_thrown_into() noexcept { flags_ |= kThrownInto; }

 protected:
  Frame() = default;
  ~Frame() = default;

  void fail_with_current_exception() noexcept;
  void set_error(std::exception_ptr error) noexcept;
  // The frame's outcome, with the errors of its children taken into account.
  void merge_errors() noexcept;
  [[nodiscard]] bool has_value() const noexcept { return flags_ & kHasValue; }
  void mark_value() noexcept { flags_ |= kHasValue; }
  void unmark_value() noexcept { flags_ &= static_cast<std::uint8_t>(~kHasValue); }

 private:
  friend struct ::weft::v0::CancellationRuntime;
  static constexpr std::uintptr_t kFirst = 1;

  std::uintptr_t slot_ = 0;
};

static_assert(sizeof(Frame) == 24,
              "a parked task must stay within its budget of bytes (bench: parked_bytes)");

inline Frame& Strand::first_frame() noexcept {
  return *std::launder(
      reinterpret_cast<Frame*>(reinterpret_cast<std::byte*>(this + 1) + kPromiseOffset));
}

}  // namespace weft::inline v0::detail
