// SPDX-License-Identifier: MIT
#include "weft/core/tree.h"

#include <cxxabi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "weft/core/adapter.h"
#include "weft/core/cancellation_runtime.h"
#include "weft/core/frame.h"
#include "weft/core/started_task.h"
#include "weft/core/thread_state.h"

namespace weft::inline v0 {

using detail::Frame;
using detail::Strand;

namespace {

// " [cancelled: why, for 1.5 ms]"
std::string cancel_note(Strand& strand, Executor& executor) {
  std::string note = std::string(" [cancelled: ") + strand.why().what;
  if (strand.state.load() & CancellationState::KICKED) {
    auto since = static_cast<std::int64_t>(strand.kick.next);  // stamped by the kick
    if (since != 0) {
      char text[32];
      std::snprintf(text, sizeof text, ", for %.3f ms",
                    static_cast<double>(executor.now_ns() - since) / 1e6);
      note += text;
    }
  }
  return note + "]";
}

}  // namespace

void TaskTreeCollector::line(std::string_view what, const std::source_location* where) {
  if (depth_ > kDepthMax) return;
  text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  text_.append(what);
  if (where) {
    text_.append(" in ");
    text_.append(detail::place_name(*where));
  }
  text_.push_back('\n');
}

void TaskTreeCollector::node(std::string_view description, const void*) { line(description); }
void TaskTreeCollector::annotate(std::string_view name) { line("\"" + std::string(name) + "\""); }

void TaskTreeCollector::type(const std::type_info& info) { line(detail::type_name(info)); }

std::string detail::place_name(const std::source_location& where) {
  std::string_view file = where.file_name();
  if (auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(where.function_name()) + " at " + std::string(file) + ":" +
         std::to_string(where.line());
}

std::string detail::thing_name(const char* kind, const char* name) {
  if (name) return std::string(kind) + " '" + name + "'";
  bool is_vowel = std::string_view("AEIOU").find(kind[0]) != std::string_view::npos;
  return std::string(is_vowel ? "an " : "a ") + kind;
}

std::string detail::type_name(const std::type_info& info) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(info.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : info.name();
}

void TaskTreeCollector::task(Strand& strand) {
  Executor* executor = Executor::current_or_null();
  detail::HomeIndex home = strand.home.load(detail::acquire);
  if (!executor || home != executor->home()) {
    line("task on another loop, number " + std::to_string(home));
    return;
  }
  int outer = depth_;
  // Outermost frame first: collect the chain, then print it the other way round. A chain deeper
  // than kDepthMax keeps its innermost frames.
  Frame* chain[kDepthMax];
  int frames = 0;
  int hidden = 0;
  for (Frame* frame = strand.top; frame; frame = frame->parent()) {
    if (frames < kDepthMax) {
      chain[frames++] = frame;
    } else {
      ++hidden;
    }
  }
  if (hidden > 0) line("(" + std::to_string(hidden) + " outer frames)");
  for (int i = frames - 1; i >= 0; --i) {
    Frame& frame = *chain[i];
    if (i > 0) {
      line("task", &chain[i - 1]->inline_slot().where);
    } else {
      std::string what = std::string("task ") + CancellationRuntime::phase_name(frame);
      if (&strand == detail::thread_state().running) what += " <you are here>";
      if (strand.state.is_cancelled()) what += cancel_note(strand, *executor);
      detail::Adapter* wait = CancellationRuntime::parked_on(strand);
      line(what, wait ? &strand.where : nullptr);
      if (wait) {
        enter();
        wait->introspect(*this);
        leave();
      }
    }
    enter();
    children(frame);
  }
  depth_ = outer;
}

void TaskTreeCollector::children(const Scope& scope) {
  enter();
  int shown = 0;
  CancellationRuntime::topology(scope).for_each_child([&](Strand& child) {
    if (shown++ < kChildrenMax && depth_ <= kDepthMax) task(child);
  });
  if (shown > kChildrenMax) line("(" + std::to_string(shown - kChildrenMax) + " more)");
  leave();
}

std::string task_tree(const Scope& scope) {
  CancellationRuntime::require_home(scope, "task_tree()");
  TaskTreeCollector tree;
  Strand& strand = CancellationRuntime::strand_of(scope);
  if (strand.is_nursery()) {
    tree.node("nursery");
    tree.children(scope);
  } else {
    tree.task(strand);
  }
  return tree.take();
}

namespace {

// Where a strand goes on upwards: the frame that its first frame was started in or awaited by. Null
// if that is on another loop, whose frames are not for this thread to read (L1).
Frame* frame_above(Strand& strand, const char*& how) {
  Scope* scope = strand.parent_link.parent();
  if (!scope) {
    how = "awaited, as a branch, by";
    detail::JoinWaiter* waiter = strand.waiter.peek();
    if (!waiter || waiter->home != strand.home.load(detail::relaxed)) return nullptr;
    Strand* waiting = detail::JoinAwaiterBase::waiting_by(*waiter);
    return waiting ? waiting->top : nullptr;
  }
  Strand* above = &CancellationRuntime::strand_of(*scope);
  if (above->home.load(detail::acquire) != strand.home.load(detail::acquire)) return nullptr;
  if (!above->is_nursery()) {
    how = "started in the scope of";
    return static_cast<Frame*>(scope);
  }
  how = "started in a nursery of";
  Strand* owner = CancellationRuntime::waiter_of_nursery(*scope);
  return owner ? owner->top : nullptr;
}

}  // namespace

namespace {

// Who awaits what is above `frame`, one line each, outwards.
std::string callers(Frame* frame) {
  std::string text;
  int number = 0;
  auto line = [&](const char* how, const std::string& what) {
    text += "#" + std::to_string(number++) + " " + how + " " + what + "\n";
  };
  while (frame && number < TaskTreeCollector::kDepthMax) {
    if (!frame->is_first()) {
      line("awaited by", detail::place_name(frame->inline_slot().where));
      frame = frame->parent();
      continue;
    }
    const char* how = "";
    frame = frame_above(frame->strand(), how);
    // T5: a task that has failed, and joins its children, awaits nothing any more.
    if (frame)
      line(how, frame->strand().first_frame().failed() ? "a task that has failed"
                                                       : detail::place_name(frame->strand().where));
  }
  return text;
}

}  // namespace

std::string async_stack_trace() {
  Strand* strand = detail::thread_state().running;
  return strand ? callers(strand->top) : std::string();
}

std::string detail::task_stack(Strand& strand) {
  TaskTreeCollector tree;
  tree.task(strand);
  return tree.take() + callers(&strand.first_frame());
}

Strand* detail::needing(const Strand& strand) noexcept {
  Scope* scope = strand.parent_link.parent();
  if (!scope) {
    JoinWaiter* waiter = strand.waiter.peek();
    return waiter ? JoinAwaiterBase::needing_by(*waiter) : nullptr;
  }
  if (CancellationRuntime::is_nursery(*scope)) return CancellationRuntime::needing_nursery(*scope);
  // A frame waits for its children at its end only.
  Strand& above = static_cast<Frame*>(scope)->strand();
  return CancellationRuntime::joins(*static_cast<Frame*>(scope)) ? &above : nullptr;
}

}  // namespace weft::inline v0
