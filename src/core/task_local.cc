// SPDX-License-Identifier: MIT
#include "weft/core/task_local.h"

#include "weft/core/cancellation_runtime.h"
#include "weft/core/thread_state.h"

namespace weft::inline v0::detail {

LocalValue::LocalValue(const void* key) noexcept : key_(key) {}
LocalValue::~LocalValue() = default;

void LocalValue::drop_ref(LocalValue* value) noexcept {
  while (value && value->refs_.fetch_sub(1, acq_rel) == 1) {
    LocalValue* outer = value->outer_;
    delete value;
    value = outer;
  }
}

namespace {
LocalValue* bindings() noexcept {
  Strand* running = thread_state().running;
  return running ? running->first_frame().locals() : nullptr;
}
}  // namespace

LocalValue* LocalValue::find(const void* key) noexcept {
  LocalValue* value = bindings();
  while (value && value->key_ != key) value = value->outer_;
  return value;
}

LocalValue* share_locals(LocalValue* locals) noexcept {
  if (locals) locals->add_ref();
  return locals;
}

void push_local(std::unique_ptr<LocalValue> value) noexcept {
  Frame& first = thread_state().running->first_frame();
  value->outer_ = first.locals();
  first.attach_first(value.release());
}

void release_locals(LocalValue* locals) noexcept { LocalValue::drop_ref(locals); }

}  // namespace weft::inline v0::detail
