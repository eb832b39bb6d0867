// SPDX-License-Identifier: MIT
#include "weft/core/foreign_awaiter.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "weft/base/log.h"
#include "weft/core/tree.h"

namespace weft::inline v0::detail {

// --- Late use -----------------------------------------------------------------------------------

#ifdef WEFT_AWAITABLE_STATE_DEBUG

namespace {

// First in, first out. Never destroyed: a thread that runs on after main() may be late, too.
struct Quarantine {
  std::mutex mutex;
  ForeignFrame* frames[kQuarantinedFrames] = {};
  std::size_t entered = 0;  // ever
};

Quarantine& quarantine() noexcept {
  alignas(Quarantine) static std::byte storage[sizeof(Quarantine)];
  static auto* made = new (storage) Quarantine;
  return *made;
}

void refuse_if_late(const ForeignFrame& frame, const char* what) noexcept {
  // acquire: the fields of a frame that another thread has retired. [pairs with Q]
  if (!frame.ended.load(acquire)) return;
  log(LogLevel::error, "the handle that weft gave to " + type_name(*frame.awaiter) + " was " +
                           what + " late: its co_await had ended before");
  WEFT_ASSERT(false, "L6: the handle of a wait is resumed once, and not after the wait has ended");
}

}  // namespace

std::size_t quarantine_size() noexcept {
  Quarantine& all = quarantine();
  std::lock_guard lock(all.mutex);
  return std::min(all.entered, kQuarantinedFrames);
}

void ForeignFrameHolder::renew(Runnable& waiting, const std::type_info& awaiter) {
  auto fresh = std::make_unique<ForeignFrame>();
  fresh->waiting = &waiting;
  fresh->awaiter = &awaiter;
  retire();
  frame_ = fresh.release();
}

void ForeignFrameHolder::retire() noexcept {
  ForeignFrame* frame = std::exchange(frame_, nullptr);
  if (!frame) return;
  frame->ended.store(true, release);       // Q
  frame->resumed.exchange(true, acq_rel);  // F3: await_suspend() may have thrown
  Quarantine& all = quarantine();
  {
    std::lock_guard lock(all.mutex);
    std::swap(frame, all.frames[all.entered++ % kQuarantinedFrames]);
  }
  delete frame;  // the oldest, if any
}

Runnable& ForeignResume::waiting_on(ForeignFrame& frame) noexcept { return *frame.waiting; }

#else

namespace {
void refuse_if_late(const ForeignFrame&, const char*) noexcept {}
}  // namespace

Runnable& ForeignResume::waiting_on(ForeignFrame& frame) noexcept {
  return static_cast<ForeignResume&>(frame);
}

#endif

// --- In time ------------------------------------------------------------------------------------

ForeignFrame::ForeignFrame() noexcept
    : ForgedFrame(&ForeignResume::on_resume, &ForeignResume::on_destroy) {}

ForeignResume::ForeignResume() noexcept : Runnable(&on_post) {}
ForeignResume::~ForeignResume() = default;

std::coroutine_handle<> ForeignResume::arm(Continuation waiter, const std::type_info& awaiter) {
  renew(*this, awaiter);
  waiter_ = waiter;
  frame().home = thread_state().executor->home();
  // release: whoever is handed the handle also sees the fields above. [pairs with R]
  frame().resumed.store(false, release);
  return handle();
}

void ForeignResume::on_resume(ForgedFrame* forged) {
  auto& frame = static_cast<ForeignFrame&>(*forged);
  bool again = frame.resumed.exchange(true, acq_rel);  // R
  if (again) refuse_if_late(frame, "resumed");
  WEFT_ASSERT(!again, "L6: the handle of a wait is resumed once");
  bool posted = port_at(frame.home).post(PostEntry(waiting_on(frame), PostKind::runnable));
  WEFT_ASSERT(posted, "L12: a loop does not end while a strand of its waits");
}

void ForeignResume::on_destroy(ForgedFrame* forged) {
  refuse_if_late(static_cast<ForeignFrame&>(*forged), "destroyed");
  WEFT_ASSERT(false,
              "an awaiter resumes the handle that weft gave it; destroying it is not for awaiters");
}

void ForeignResume::on_post(Runnable& work) noexcept {
  static_cast<ForeignResume&>(work).waiter_.wake();
}

namespace {

// One coroutine of the plainest kind, to see where the compiler puts things.
struct Probe {
  struct promise_type {
    Probe get_return_object() { return {this}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
    std::uint64_t filler = 0;
  };
  promise_type* promise;
};
Probe probe() { co_return; }

bool check() {
  Probe coroutine = probe();
  auto handle = std::coroutine_handle<Probe::promise_type>::from_promise(*coroutine.promise);
  WEFT_ASSERT(handle_of_promise(coroutine.promise).address() == handle.address(),
              "this compiler does not put the promise where weft expects it (core/frame_abi.h)");
  handle.destroy();

  static bool called;
  called = false;
  ForgedFrame forged([](ForgedFrame*) { called = true; }, [](ForgedFrame*) {});
  resume_foreign(forged.handle());
  WEFT_ASSERT(called,
              "this compiler does not begin a frame with its resume function (core/frame_abi.h)");
  return true;
}

}  // namespace

void frame_abi_self_test() {
  static bool once = check();
  static_cast<void>(once);
}

}  // namespace weft::inline v0::detail
