// SPDX-License-Identifier: MIT
#include "epoll_io.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

EpollIO::EpollIO(int wake_fd) : ReadinessIO(wake_fd), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  // Edge-triggered: each write to it is one event, and nobody has to read it empty.
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_fd, &event) < 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

EpollIO::~EpollIO() {
  orphan_entries();
  free_dropped();
}

// Once per descriptor, for both directions: an edge-triggered registration costs nothing while it is
// silent.
int EpollIO::watch(ReadinessEntry& entry) noexcept {
  if (entry.watched) return 0;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;
  event.data.ptr = &entry;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.fd, &event) < 0) return errno;
  entry.watched = true;
  return 0;
}

void EpollIO::unwatch(ReadinessEntry& entry) noexcept {
  // By name, and before the number is closed: a copy of the descriptor, in a child process for
  // instance, would otherwise keep reporting.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry.fd, nullptr);
  entry.watched = false;
}

int EpollIO::wait(epoll_event* events, std::int64_t timeout_ns) noexcept {
  if (timeout_ns <= 0) {
    return ::epoll_wait(epoll_.get(), events, kEventsMax, timeout_ns == 0 ? 0 : -1);
  }
  if (has_pwait2_) {
    timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    int count = ::epoll_pwait2(epoll_.get(), events, kEventsMax, &timeout, nullptr);
    if (count >= 0 || errno != ENOSYS) return count;
    has_pwait2_ = false;  // Linux before 5.11
  }
  // Up: a timer must not find that it was woken too early, and again, and again.
  std::int64_t ms = (timeout_ns + 999'999) / 1'000'000;
  return ::epoll_wait(epoll_.get(), events, kEventsMax,
                      static_cast<int>(ms < kMillisecondsMax ? ms : kMillisecondsMax));
}

void EpollIO::poll(std::int64_t timeout_ns) {
  epoll_event events[kEventsMax];
  int count = wait(events, has_completions() ? 0 : timeout_ns);
  WEFT_ASSERT(count >= 0 || errno == EINTR,
              "epoll_wait() fails only for a descriptor that is none");
  take_closed_elsewhere();
  finish_done();
  for (int i = 0; i < count; ++i) {
    auto* entry = static_cast<ReadinessEntry*>(events[i].data.ptr);
    if (!entry || !entry->watched) continue;  // the wake-up; or its descriptor was closed meanwhile
    std::uint32_t bits = events[i].events;
    happened(*entry, {.in = (bits & EPOLLIN) != 0,
                      .out = (bits & EPOLLOUT) != 0,
                      .hung_up = (bits & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
                      .urgent = (bits & EPOLLPRI) != 0});
  }
  free_dropped();
}

}  // namespace weft::inline v0::detail
