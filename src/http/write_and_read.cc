// SPDX-License-Identifier: MIT
#include "weft/http/write_and_read.h"

#include <algorithm>
#include <exception>
#include <type_traits>
#include <utility>

#include "weft/core/branch.h"
#include "weft/io/platform_io.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::http::detail {

namespace {

using weft::detail::Alarm;
using weft::detail::Branch;
using weft::detail::BranchBase;
using weft::detail::BranchOwner;
using weft::detail::Continuation;
using weft::detail::Strand;
using weft::detail::Waker;

class Awaiter final : private BranchOwner, private Waker {
  using Write = decltype(std::declval<Descriptor&>().write(std::span<const std::byte>()));
  using Read = decltype(std::declval<Descriptor&>().read_pooled());

 public:
  using native_awaiter = void;

  Awaiter(Descriptor& socket, std::span<const std::byte> bytes, WriteAndReadTimes times,
          WriteListener& listener)
      : write_(socket.write(bytes)),
        read_(socket.read_pooled()),
        bytes_(bytes.size()),
        times_(times),
        listener_(listener) {}

  static constexpr bool await_ready() noexcept { return false; }
  static std::true_type await_early_cancel() noexcept { return {}; }  // nothing was begun
  bool await_suspend(Continuation waiter) {
    waiter_ = waiter;
    since_ = now();
    alarm_.arm(until(std::min(times_.write, times_.read)), here());
    is_busy_ = true;
    static_cast<void>(read_.start(*this, false));  // first: the end of the write may end it
    if (write_.start(*this, false)) note_write();
    is_busy_ = false;
    if (!is_over()) return true;
    alarm_.disarm();
    return false;
  }
  bool await_cancel(Continuation) noexcept {
    give_up();
    if (!is_over()) return false;
    alarm_.disarm();
    if (!await_must_resume()) return true;
    waiter_.wake();
    return false;
  }
  // Of a whole write the listener has heard.
  [[nodiscard]] bool await_must_resume() const noexcept {
    return read_.has_result() || failure_ || outcome_.write_error ||
           (outcome_.written > 0 && !is_whole());
  }
  WrittenAndRead await_resume() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (write_is_late_ && outcome_.written == 0 && !outcome_.write_error) {
      outcome_.write_error = std::make_error_code(std::errc::timed_out);
    }
    if (read_.has_result()) {
      outcome_.read.emplace(read_.take());
    } else if (read_is_late_) {
      outcome_.read.emplace(std::unexpected(std::make_error_code(std::errc::timed_out)));
    }
    return std::move(outcome_);
  }
  void await_introspect(auto& tree) noexcept {
    tree.node(write_.is_running() ? "write, and then read" : "read");
  }

 private:
  [[nodiscard]] bool is_over() const noexcept {
    return !write_.is_running() && !read_.is_running();
  }
  [[nodiscard]] bool is_whole() const noexcept { return outcome_.written == bytes_; }

  void over(BranchBase& branch) noexcept override {
    if (&branch == &write_) note_write();
    if (is_busy_ || !is_over()) return;
    alarm_.disarm();
    waiter_.wake();
  }
  // The write is over: W1, W2.
  void note_write() noexcept {
    if (write_.has_result()) take_count();
    since_ = now();
    if (!is_whole() || !listener_.written()) give_up();
  }
  void take_count() noexcept {
    try {
      Result<std::size_t> count = write_.take();
      if (count) outcome_.written = *count;
      if (!count) outcome_.write_error = count.error();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void give_up() noexcept {
    bool was_busy = std::exchange(is_busy_, true);
    if (write_.cancel()) note_write();
    static_cast<void>(read_.cancel());
    is_busy_ = was_busy;
  }

  // W3.
  void wake() noexcept override {
    bool writes = write_.is_running();
    TimePoint end = until(writes ? times_.write : times_.read);
    if (now() < end) return alarm_.arm(end, here());
    (writes ? write_is_late_ : read_is_late_) = true;
    give_up();
    if (is_over()) waiter_.wake();
  }
  [[nodiscard]] Continuation here() noexcept { return Continuation(static_cast<Waker&>(*this)); }
  [[nodiscard]] TimePoint until(std::chrono::nanoseconds time) const noexcept {
    return time > TimePoint::max() - since_ ? TimePoint::max() : since_ + time;
  }
  bool cancel_with(const CancelReason&) noexcept override { return false; }
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter_.strand(); }

  Branch<Write> write_;
  Branch<Read> read_;
  Alarm alarm_;
  Continuation waiter_;
  const std::size_t bytes_;
  const WriteAndReadTimes times_;
  WriteListener& listener_;
  TimePoint since_{};  // the write was begun; and then: it was over
  WrittenAndRead outcome_;
  std::exception_ptr failure_;  // of the write: it could not begin
  bool write_is_late_ = false;
  bool read_is_late_ = false;
  bool is_busy_ = false;  // a call of our own is on the stack: it looks whether this is the end
};

class Wait {
 public:
  Wait(Descriptor& socket, std::span<const std::byte> bytes, WriteAndReadTimes times,
       WriteListener& listener) noexcept
      : socket_(socket), bytes_(bytes), times_(times), listener_(listener) {}
  Awaiter operator co_await() const { return Awaiter(socket_, bytes_, times_, listener_); }

 private:
  Descriptor& socket_;
  std::span<const std::byte> bytes_;
  WriteAndReadTimes times_;
  WriteListener& listener_;
};

}  // namespace

bool writes_and_reads() noexcept {
  PlatformIO* io = PlatformIO::current_or_null();
  return io && io->driver() == Driver::io_uring;
}

Task<WrittenAndRead> write_and_read(Descriptor& socket, std::span<const std::byte> bytes,
                                    WriteAndReadTimes times, WriteListener& listener) {
  co_return co_await Wait(socket, bytes, times, listener);
}

}  // namespace weft::inline v0::http::detail
