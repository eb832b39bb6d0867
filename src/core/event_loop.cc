// SPDX-License-Identifier: MIT
#include "weft/core/event_loop.h"

#include <exception>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/steady_clock.h"
#include "weft/core/caught_error.h"

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
  void* call = nullptr;
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
  link_->executor = nullptr;  // as Attached does, for a run() that ended before drive()
  t_innermost = outer_;
}

std::int64_t ForeignExecutor::now_ns() const { return steady_ns(); }

// Has posters wake the loop while it runs, and not a moment longer: a poster that is late must find
// nothing to call, because what it would call is about to be destroyed (P2). The same for calls that
// the loop owes us: they find nobody.
class ForeignExecutor::Attached {
 public:
  explicit Attached(ForeignExecutor& executor) : executor_(executor) {
    set(&executor, [](void* self) noexcept { static_cast<ForeignExecutor*>(self)->woken(); });
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    set(nullptr, nullptr);
    executor_.link_->executor = nullptr;
  }

 private:
  void set(void* context, void (*wake)(void*) noexcept) {
    LoopPort& port = executor_.port();
    std::lock_guard lock(port.mutex);
    port.wake_context = context;
    port.wake = wake;
  }
  ForeignExecutor& executor_;
};

void ForeignExecutor::drive(RootWaiter& root) {
  Attached attached(*this);
  root_ = &root;
  drain();
  std::exception_ptr thrown;
  try {
    while (!over()) {
      run_loop();
      if (!std::exchange(interrupted_, false)) break;
      drain();
    }
  } catch (...) {  // by a callback of the loop that is not ours
    thrown = std::current_exception();
  }
  bool early = !over();
  if (early) end_tasks();
  if (thrown) std::rethrow_exception(thrown);
  if (early) throw_usage_error("the event loop was stopped before the task of run() had ended");
}

void ForeignExecutor::end_tasks() {
  cancel_all();
  while (!over() && restart_loop()) {
    drain();
    if (over()) return;
    try {
      run_loop();
    } catch (...) {  // the first one is rethrown, or the stop told; L12 goes before the others
      report_unread_error(CaughtError::current());
    }
  }
  if (over()) return;
  // It calls back no more, so they must end with what can run now.
  ending_ = true;
  drain();
  if (!over()) abandon(*root_, "the event loop was stopped while tasks wait for it");
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
  if (!call_at(deadline_ns, &timer_called, call, call->call)) {
    delete call;
    Executor::arm_timer(timer, deadline_ns);  // throws
  }
  timer.deadline_ns = deadline_ns;
  timer.prev = reinterpret_cast<TimerNode*>(call);
  timer.next = &timer;
}

void ForeignExecutor::disarm_timer(TimerNode& timer) noexcept {
  if (!timer.armed()) return;
  auto* call = reinterpret_cast<TimerCall*>(timer.prev);
  call->timer = nullptr;
  if (take_back(call->call)) delete call;
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
