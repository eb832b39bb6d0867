// SPDX-License-Identifier: MIT
#include "weft/core/cancel_node.h"

#include "weft/core/cancellation_runtime.h"

namespace weft::inline v0 {

void CancelNode::withdraw() noexcept { CancellationRuntime::withdraw(*this); }

bool HeapCancelNode::disarm() noexcept {
  // seq_cst, here and in on_publish(): orders "armed_ is cleared" and "home_ is set", so that a
  // node which is disarmed while it is being published is taken out by one of the two.
  if (!armed_.exchange(false, detail::seq_cst)) return false;
  detail::HomeIndex at = home();
  if (at == 0) return true;
  if (Executor* here = Executor::current_or_null(); here && here->home() == at) {
    withdraw();
    return true;
  }
  add_ref();  // for the post under way
  post_leave(at);
  return true;
}

void HeapCancelNode::post_leave(detail::HomeIndex to) noexcept {
  detail::PostEntry entry(leave_, detail::PostKind::runnable);
  while (!detail::port_at(to & ~kUnderWay).post(entry)) {
    // Closed: the scope has moved on meanwhile, or is gone, and the node has left it.
    detail::HomeIndex now = home();
    if (now == to) return drop_ref();
    to = now;
  }
}

void HeapCancelNode::leave_posted(Runnable& work) noexcept {
  HeapCancelNode& node = *static_cast<Leave&>(work).node;
  // The scope's task may have moved, or be on its way here: then so is this.
  detail::HomeIndex at = node.home();
  if (at != Executor::current_or_null()->home()) return node.post_leave(at);
  node.withdraw();
  node.drop_ref();
}

void HeapCancelNode::on_publish() noexcept {
  if (!armed_.load(detail::seq_cst)) withdraw();
}

void HeapCancelNode::on_cancel() noexcept {
  if (armed_.exchange(false, detail::acq_rel)) do_cancel();
}

void HeapCancelNode::on_cleanup() noexcept {
  if (armed_.exchange(false, detail::acq_rel)) do_cleanup();
}

}  // namespace weft::inline v0
