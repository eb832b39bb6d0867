// SPDX-License-Identifier: MIT
#include "weft/core/task_local.h"

#include "weft/core/cancellation_runtime.h"
#include "weft/core/thread_state.h"

namespace weft::inline v0::detail {

LocalValue::LocalValue(const void* key, LocalValue* outer) noexcept : key_(key), outer_(outer) {}
LocalValue::~LocalValue() = default;

void LocalValue::drop_ref(LocalValue* value) noexcept {
  while (value && value->refs_.fetch_sub(1, acq_rel) == 1) {
    LocalValue* outer = value->outer_;
    delete value;
    value = outer;
  }
}

LocalValue* LocalValue::find(const void* key) noexcept {
  Strand* running = thread_state().running;
  for (LocalValue* value = running ? running->locals : nullptr; value; value = value->outer_) {
    if (value->key_ == key) return value;
  }
  return nullptr;
}

LocalValue* running_locals() noexcept {
  Strand* running = thread_state().running;
  if (!running || !running->locals) return nullptr;
  running->locals->add_ref();
  return running->locals;
}

void push_local(LocalValue* value) noexcept {
  Strand* running = thread_state().running;
  LocalValue::drop_ref(std::exchange(running->locals, value));
}

void inherit_locals(Strand& child) noexcept { child.locals = running_locals(); }

void release_locals(Strand& strand) noexcept {
  LocalValue::drop_ref(std::exchange(strand.locals, nullptr));
}

}  // namespace weft::inline v0::detail
