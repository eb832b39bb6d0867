// SPDX-License-Identifier: MIT
#include "weft/run/signals.h"

#include <unistd.h>

#include <bit>
#include <cstdint>

#include "signal_registry.h"
#include "weft/base/assert.h"
#include "weft/core/primitives.h"
#include "weft/io/descriptor.h"

namespace weft::inline v0 {

using detail::SignalBits;
using detail::SignalEntry;

namespace {

std::optional<int> take(SignalEntry& entry) noexcept {
  // A late handler may have left a bit that was meant for the entry's last user.
  SignalBits wanted = entry.wanted.load(detail::relaxed);
  SignalBits came = entry.came.load(detail::acquire) & wanted;
  if (came == 0) return std::nullopt;
  SignalBits first = came & (~came + 1);
  entry.came.fetch_and(~first, detail::acquire);
  return std::countr_zero(first) + 1;
}

class OnlyWaiter {
 public:
  explicit OnlyWaiter(SignalEntry& entry) : entry_(entry) {
    if (entry.has_waiter.exchange(true, detail::relaxed)) {
      detail::throw_usage_error(
          "one waiter at a time: another task awaits this SignalSet; give each a set of its own");
    }
  }
  ~OnlyWaiter() { entry_.has_waiter.store(false, detail::relaxed); }
  OnlyWaiter(const OnlyWaiter&) = delete;
  OnlyWaiter& operator=(const OnlyWaiter&) = delete;

 private:
  SignalEntry& entry_;
};

Task<int> wait_on(SignalEntry& entry) {
  OnlyWaiter waiter(entry);
  co_await finish_if_cancelled();
  for (;;) {
    if (std::optional<int> signal = take(entry)) co_return *signal;
    Result<void> woken = co_await readable(entry.fd);
    if (!woken) throw_error(woken.error());
    // Emptied before the look: what comes after that look fills it again.
    std::uint64_t count;
    static_cast<void>(::read(entry.fd, &count, sizeof count));
  }
}

Task<void> wait_once(SignalSet set) { static_cast<void>(co_await set.next()); }

}  // namespace

SignalSet::SignalSet(std::initializer_list<int> signals)
    : entry_(&detail::SignalRegistry::listen(signals)) {}

SignalSet::~SignalSet() {
  if (!entry_) return;
  WEFT_ASSERT(!entry_->has_waiter.load(detail::relaxed), "a SignalSet outlives its waiter");
  detail::SignalRegistry::leave(*entry_);
}

Task<int> SignalSet::next() {
  if (!entry_) detail::throw_usage_error("this SignalSet was moved from");
  return wait_on(*entry_);
}

std::optional<int> SignalSet::try_next() noexcept { return entry_ ? take(*entry_) : std::nullopt; }

Task<void> signal_received(int signal) { return wait_once(SignalSet({signal})); }

}  // namespace weft::inline v0
