// SPDX-License-Identifier: MIT
#include "weft/core/callback.h"

namespace weft::inline v0::detail {

void CallbackPost::begin(Continuation waiter) {
  waiter_ = waiter;
  home_ = Executor::current("until_callback()").home();
}

void CallbackPost::send() noexcept {
  bool posted = port_at(home_).post(PostEntry(*this, PostKind::runnable));
  WEFT_ASSERT(posted, "L12: a loop does not end while a strand of its waits");
}

void CallbackPost::arrived(Runnable& work) noexcept {
  static_cast<CallbackPost&>(work).waiter_.wake();
}

}  // namespace weft::inline v0::detail
