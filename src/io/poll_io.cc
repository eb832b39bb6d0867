// SPDX-License-Identifier: MIT
#include "poll_io.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

PollIO::~PollIO() {
  orphan_entries();
  free_dropped();
}

void PollIO::poll(std::int64_t timeout_ns) {
  asked_.assign(1, pollfd{wake_fd(), POLLIN, 0});
  entries_.assign(1, nullptr);
  for (IoEntry* each = first_entry(); each; each = each->next) {
    auto& entry = static_cast<ReadinessEntry&>(*each);
    short events = 0;
    if (entry.reader && !entry.reader->paused) events |= POLLIN;
    if (entry.writer) events |= POLLOUT;
    if (!entry.watched || events == 0) continue;
    asked_.push_back({entry.fd, events, 0});
    entries_.push_back(&entry);
  }
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  if (has_completions()) timeout = {};
  int count = ::ppoll(asked_.data(), asked_.size(),
                      timeout_ns == kForever && !has_completions() ? nullptr : &timeout, nullptr);
  WEFT_ASSERT(count >= 0 || errno == EINTR, "ppoll() fails only for want of memory");
  take_closed_elsewhere();
  finish_done();
  if (count > 0 && asked_[0].revents) {
    std::uint64_t written;
    static_cast<void>(::read(wake_fd(), &written, sizeof written));
  }
  for (std::size_t i = 1; count > 0 && i < asked_.size(); ++i) {
    short bits = asked_[i].revents;
    ReadinessEntry& entry = *entries_[i];
    if (bits == 0 || !entry.watched) continue;
    // Level-triggered: a hang-up is said again, and only to those who wait.
    happened(entry, {.in = (bits & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0,
                     .out = (bits & (POLLOUT | POLLHUP | POLLERR | POLLNVAL)) != 0,
                     .hung_up = false,
                     .urgent = false});
  }
  free_dropped();
}

}  // namespace weft::inline v0::detail
