// SPDX-License-Identifier: MIT
#include "weft/core/event_loop.h"

#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

namespace {
// The innermost run() on a foreign loop in this thread.
constinit thread_local ForeignExecutor* t_innermost = nullptr;
}  // namespace

struct ForeignExecutor::Link {
  ForeignExecutor* executor;
};

struct ForeignExecutor::TimerCall {
  std::shared_ptr<Link> link;
  TimerNode* timer;  // null: disarmed
};

ForeignExecutor::ForeignExecutor(EventLoopID id, bool takes_posts)
    : Loop(takes_posts), id_(id), outer_(t_innermost) {
  for (ForeignExecutor* running = outer_; running; running = running->outer_) {
    if (running->id_ == id) {
      throw_usage_error(
          "this event loop runs already: inside a task, await instead of calling run() on it");
    }
  }
  link_ = std::make_shared<Link>(Link{this});
  t_innermost = this;
}

ForeignExecutor::~ForeignExecutor() {
  link_->executor = nullptr;
  t_innermost = outer_;
}

std::int64_t ForeignExecutor::now_ns() const {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Has posters wake the loop while it runs, and not a moment longer: a poster that is late must find
// nothing to call, because what it would call is about to be destroyed (P2).
class ForeignExecutor::WakeHook {
 public:
  explicit WakeHook(ForeignExecutor& executor) : port_(executor.port()) {
    set(&executor, [](void* self) noexcept { static_cast<ForeignExecutor*>(self)->woken(); });
  }
  WakeHook(const WakeHook&) = delete;
  WakeHook& operator=(const WakeHook&) = delete;
  ~WakeHook() { set(nullptr, nullptr); }

 private:
  void set(void* context, void (*wake)(void*) noexcept) {
    std::lock_guard lock(port_.mutex);
    port_.wake_context = context;
    port_.wake = wake;
  }
  LoopPort& port_;
};

void ForeignExecutor::drive(RootWaiter& root) {
  WakeHook hook(*this);
  root_ = &root;
  drain();
  while (!over()) {
    run_loop();
    if (!std::exchange(interrupted_, false)) break;
    drain();
  }
  if (over()) return;
  // Someone else stopped the loop. The task and all guests are told, and must end with what can run
  // now.
  cancel_all();
  ending_ = true;
  drain();
  if (!over()) abandon(root, "the event loop was stopped while tasks wait for it");
  throw_usage_error("the event loop was stopped before the task of run() had ended");
}

bool ForeignExecutor::drain_soon() {
  auto* context = new std::shared_ptr<Link>(link_);
  if (call_soon(&drain_called, context)) return true;
  delete context;
  return false;
}

// A callback of the loop has started or cancelled something.
void ForeignExecutor::work_came() noexcept {
  if (drain_soon()) return;
  interrupted_ = true;
  stop_loop();
}

void ForeignExecutor::woken() noexcept {
  if (drain_soon()) return;
  WEFT_ASSERT(is_current(),
              "resuming a task from another thread needs EventLoopTraits::post for its event loop");
  drain();
}

void ForeignExecutor::drain() {
  if (draining_) return;
  draining_ = true;
  tell_of_work(false);
  for (;;) {
    bool more = turn();
    if (over()) break;
    if (more) {
      // Let the loop's own work come between, if it can call back, and still runs.
      if (!ending_ && drain_soon()) break;
    } else if (port().inbox.try_sleep()) {
      break;
    }
  }
  draining_ = false;
  if (over()) return stop_loop();
  tell_of_work(true);
}

// L12: not before its last strand is gone, husks that wait for a kick under way included.
bool ForeignExecutor::over() noexcept { return root_->done && try_close(); }

void ForeignExecutor::drain_called(void* context) {
  std::unique_ptr<std::shared_ptr<Link>> link(static_cast<std::shared_ptr<Link>*>(context));
  if ((*link)->executor) (*link)->executor->drain();
}

void ForeignExecutor::arm_timer(TimerNode& timer, std::int64_t deadline_ns) {
  auto* call = new TimerCall{link_, &timer};
  if (!call_at(deadline_ns, &timer_called, call)) {
    delete call;
    Executor::arm_timer(timer, deadline_ns);  // throws
  }
  timer.deadline_ns = deadline_ns;
  timer.prev = reinterpret_cast<TimerNode*>(call);
  timer.next = &timer;
}

void ForeignExecutor::disarm_timer(TimerNode& timer) noexcept {
  if (!timer.armed()) return;
  reinterpret_cast<TimerCall*>(timer.prev)->timer = nullptr;
  timer.prev = timer.next = nullptr;
}

void ForeignExecutor::timer_called(void* context) {
  std::unique_ptr<TimerCall> call(static_cast<TimerCall*>(context));
  if (!call->timer || !call->link->executor) return;
  TimerNode& timer = *call->timer;
  timer.prev = timer.next = nullptr;
  call->link->executor->tell_of_work(false);  // what it makes ready is looked at right below
  timer.fire(timer);
  call->link->executor->drain();
}

}  // namespace weft::inline v0::detail
