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
  if (!detail::port_at(at).post(detail::PostEntry(leave_, detail::PostKind::runnable))) drop_ref();
  return true;
}

void HeapCancelNode::leave_posted(Runnable& work) noexcept {
  HeapCancelNode& node = *static_cast<Leave&>(work).node;
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
