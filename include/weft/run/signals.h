// SPDX-License-Identifier: MIT
#pragma once
// weft::SignalSet, signal_received: signals of the operating system, awaited like anything else.
//
//     SignalSet signals({SIGHUP, SIGUSR1});
//     for (;;) {
//       int which = co_await signals.next();
//       if (which == SIGHUP) reload();
//     }
//
//     co_await any_of(serve(), signal_received(SIGTERM));
//
// While a set exists, its signals do nothing but come to it: the program goes on. One that comes
// while nobody waits is kept; several of one number, kept so, are one (as in the kernel). When the
// last set with a signal goes, what the signal did before is in force again. An IOContext handles
// SIGINT and SIGTERM by itself (IOContextOptions::stop_on_signals); a set takes them away from it.
//
// Every set hears of every signal of its numbers: tasks that want the same signal have a set each.
//
// Threads        any thread, any loop that has I/O; a set may be awaited on one loop now and on
//                another later. The kernel may give the signal to any thread that does not block it;
//                workers of an IOContext do, the thread that calls run() does not.
// Cancellation   next() is a cancel point on every call; a cancelled one took nothing.
// Resumption     on the waiter's home loop. Lower numbers first, if several came.
// Errors         std::system_error for what is no signal, or SIGKILL and SIGSTOP; UsageError for
//                SIGSEGV and its like, which cannot be waited for, and for a second waiter of a set.
// Allocation     a set: an entry and a descriptor, kept for the next set when it goes. next(): a
//                frame.
#include <csignal>
#include <initializer_list>
#include <optional>
#include <utility>

#include "weft/core/task.h"

namespace weft::inline v0 {

namespace detail {
struct SignalEntry;
}

class [[nodiscard]] SignalSet {
 public:
  SignalSet(std::initializer_list<int> numbers);
  SignalSet(SignalSet&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  SignalSet& operator=(SignalSet&& other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  // Requires: nobody waits.
  ~SignalSet();

  // Returns: the number of a signal that came, since the set was made, and was not told of yet. The
  // set may be moved meanwhile.
  [[nodiscard]] Task<int> next();
  // The same, if there is one now.
  [[nodiscard]] std::optional<int> try_next() noexcept;

 private:
  detail::SignalEntry* entry_;
};

// Waits for one signal; it counts from this call on, not from when it is awaited.
[[nodiscard]] Task<void> signal_received(int signal);

}  // namespace weft::inline v0
