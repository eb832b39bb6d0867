// SPDX-License-Identifier: MIT
#include "weft/io/descriptor.h"

#include <cerrno>
#include <utility>

#include "system_call.h"
#include "weft/base/assert.h"
#include "weft/core/executor.h"

namespace weft::inline v0 {

void Descriptor::close() noexcept {
  if (!entry_) {
    fd_.reset();
    return;
  }
  detail::IoEntry& entry = *std::exchange(entry_, nullptr);
  PlatformIO* here = PlatformIO::current_or_null();
  if (here && here == entry.io.load(detail::relaxed)) {
    here->close(entry, std::move(fd_));
  } else {
    PlatformIO::close_elsewhere(entry, std::move(fd_));
  }
}

void Descriptor::leave_loop() {
  if (!entry_) return;
  PlatformIO* io = entry_->io.load(detail::relaxed);
  if (io && io != PlatformIO::current_or_null()) {
    detail::throw_usage_error("a descriptor leaves its loop there, on that loop");
  }
  if (entry_->in_flight > 0) {
    detail::throw_usage_error("a descriptor leaves its loop while no operation on it is under way");
  }
  if (io) {
    if (!io->let_go(*entry_)) entry_ = nullptr;
  } else if (!entry_->has_ahead()) {
    PlatformIO::close_elsewhere(*std::exchange(entry_, nullptr), UniqueFd());
  }
}

UniqueFd Descriptor::release() {
  leave_loop();
  if (entry_) {
    detail::throw_usage_error(
        entry_->has_read_ahead()
            ? "bytes were read ahead of this descriptor: read() them before release()"
            : "connections were accepted ahead on this listener: accept() them before release()");
  }
  return std::move(fd_);
}

detail::IoEntry& Descriptor::entry_on(PlatformIO& io) {
  if (entry_ && entry_->io.load(detail::relaxed) == &io) [[likely]]
    return *entry_;
  if (!fd_) detail::throw_usage_error("this Descriptor is empty: it was closed or moved from");
  if (entry_) {
    if (entry_->io.load(detail::relaxed)) {
      detail::throw_usage_error(
          "this descriptor belongs to another loop: leave_loop() there, or use it there");
    }
    entry_ = &io.adopt(*entry_);  // that loop has ended, or it has left
    return *entry_;
  }
  entry_ = &io.attach(fd_.get());
  return *entry_;
}

namespace detail {

void IoAwaiterBase::prepare(Continuation by) {
  Executor& loop = Executor::current("an I/O operation");
  io_ = loop.services().io;
  if (!io_) {
    throw_usage_error(
        "this event loop has no I/O: run the task on an EventLoop or an IOContext, or on() one");
  }
  waiter = by;
  if (on_) {
    // None: a close() comes between two operations of a task as well as under one, and is told in the same way.
    entry = *on_ ? &on_->entry_on(*io_) : nullptr;
  } else if (code != IoCode::open) {
    entry = io_->borrow(flags);
  }
}

bool IoAwaiterBase::await_suspend(Continuation by) {
  prepare(by);
  if (!entry && code != IoCode::open) [[unlikely]] {
    result = -EBADF;
    return false;
  }
  return !io_->start(*this);
}

bool IoAwaiterBase::await_cancel(Continuation) noexcept { return io_->cancel(*this); }
bool IoAwaiterBase::await_must_resume() const noexcept { return result != -ECANCELED; }
const char* IoAwaiterBase::name() const noexcept { return name_of(code); }

bool AcceptAwaiter::await_suspend(Continuation by) {
  prepare(by);
  if (!entry) [[unlikely]] {
    result = -EBADF;
    return false;
  }
  if (!std::exchange(entry->accept_paused, false)) return !io().start(*this);
  io().start_paused(*this);
  if (!paused) return false;  // there was one that had been accepted before
  pause_.arm(now() + Descriptor::kAcceptPause, Continuation(static_cast<Waker&>(*this)));
  return true;
}

void AcceptAwaiter::wake() noexcept {
  if (!io().resume_paused(*this)) return;
  waiter.wake();
}

bool AcceptAwaiter::await_cancel(Continuation by) noexcept {
  pause_.disarm();
  return IoAwaiterBase::await_cancel(by);
}

}  // namespace detail

}  // namespace weft::inline v0
