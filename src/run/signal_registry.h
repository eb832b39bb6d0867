// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::SignalRegistry: who wants to hear of which signal, as a signal handler can read it.
//
// There is one handler for every signal that somebody listens to. It sets a bit in each listener's
// entry and writes to its descriptor; nothing else, and that is all that a handler may do.
//
// Threads        every member, any thread. The handler: any thread, at any instruction.
//
// Invariants
//   S1  an entry is never freed, and its descriptor's number never closed, only reused by a later
//       listener of the same kind: a handler that is late writes to something that is there, and
//       somebody looks around for nothing.
//   S2  our handler is installed for a signal exactly while an entry wants it (or, if that was too
//       late to undo, because somebody else has replaced it).
//   S3  a set that wants a signal keeps it from the contexts that would stop.
#include <cstdint>
#include <initializer_list>

#include "weft/atomic/atomic.h"

namespace weft::inline v0::detail {

using SignalBits = std::uint64_t;  // signal n: bit n - 1

struct SignalEntry {
  Atomic<SignalBits> wanted{0};
  Atomic<SignalBits> came{0};
  Atomic<bool> has_waiter{false};
  int fd = -1;                       // an eventfd's
  SignalEntry* next = nullptr;       // all of its kind
  SignalEntry* next_free = nullptr;  // those that nobody uses
};

class SignalRegistry {
 public:
  // A SignalSet. Throws what SignalSet's constructor throws.
  [[nodiscard]] static SignalEntry& listen(std::initializer_list<int> signals);
  static void leave(SignalEntry& set) noexcept;

  // A context that stops for SIGINT and SIGTERM, as far as they have their default effect; its loop
  // is woken by writing to wake_fd. Returns: null if there is nothing to do, or no descriptor left.
  [[nodiscard]] static SignalEntry* listen_to_stop(int wake_fd) noexcept;
  static void leave_stop(SignalEntry& context) noexcept;
};

// While a context runs.
class StopSignals {
 public:
  StopSignals(bool wanted, int wake_fd) noexcept
      : entry_(wanted ? SignalRegistry::listen_to_stop(wake_fd) : nullptr) {}
  ~StopSignals() {
    if (entry_) SignalRegistry::leave_stop(*entry_);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Returns: whether one has come.
  [[nodiscard]] bool asked() const noexcept { return entry_ && entry_->came.load(acquire) != 0; }

 private:
  SignalEntry* entry_;
};

}  // namespace weft::inline v0::detail
