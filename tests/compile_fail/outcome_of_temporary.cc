// expect: outcome
// SPDX-License-Identifier: MIT
// The handle must outlive the wait for its outcome: a temporary one would be dropped, and cancel.
#include "weft/weft.h"

weft::Task<int> child();
weft::Task<void> user() {
  auto how = co_await child().start_in_current_scope().outcome();
  static_cast<void>(how);
}
