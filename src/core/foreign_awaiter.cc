// SPDX-License-Identifier: MIT
#include "weft/core/foreign_awaiter.h"

namespace weft::inline v0::detail {

ForeignResume::ForeignResume() noexcept
    : ForgedFrame(&on_resume, &on_destroy), Runnable(&on_post) {}
ForeignResume::~ForeignResume() = default;

std::coroutine_handle<> ForeignResume::arm(Continuation waiter) noexcept {
  waiter_ = waiter;
  home_ = thread_state().executor->home();
  // release: whoever is handed the handle also sees the fields above. [pairs with R]
  resumed_.store(false, release);
  return handle();
}

void ForeignResume::on_resume(ForgedFrame* frame) {
  auto& self = static_cast<ForeignResume&>(*frame);
  bool again = self.resumed_.exchange(true, acq_rel);  // R
  WEFT_ASSERT(!again, "L6: the handle of a wait is resumed once");
  bool posted =
      port_at(self.home_).post(PostEntry(static_cast<Runnable&>(self), PostKind::runnable));
  WEFT_ASSERT(posted, "L12: a loop does not end while a strand of its waits");
}

void ForeignResume::on_destroy(ForgedFrame*) {
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
