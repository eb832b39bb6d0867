// SPDX-License-Identifier: MIT
#include "weft/sync/wait_report.h"

#include <string>

#include "describe.h"

namespace weft::inline v0::detail {

void describe_wait(TaskTreeCollector& tree, Waited waited, const char* what, WaitPlace at) {
  const std::string standing_at = at.place == 0 ? "just notified" : standing(at);
  tree.node(thing_name(waited.kind, waited.name) + " " + what + ", " + standing_at);
}

void abort_destroyed_while_awaited(Waited waited) noexcept {
  abort_awaited(waited.kind, waited.name);
}

}  // namespace weft::inline v0::detail
