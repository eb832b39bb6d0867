// SPDX-License-Identifier: MIT
#include "weft/sync/wait_report.h"

#include <cstdlib>
#include <string>

#include "weft/base/log.h"
#include "weft/core/tree.h"

namespace weft::inline v0::detail {

namespace {

std::string called(Waited waited) {
  std::string text = waited.kind;
  if (waited.name) text += std::string(" '") + waited.name + "'";
  return text;
}

}  // namespace

void describe_wait(TaskTreeCollector& tree, Waited waited, const char* what, WaitPlace at) {
  std::string text = called(waited) + " " + what;
  if (at.place == 0) {
    text += ", just notified";
  } else {
    text += ", " + std::to_string(at.place) + " of " + std::to_string(at.of) + " waiting";
  }
  tree.node(text);
}

void abort_destroyed_while_awaited(Waited waited) noexcept {
  log(LogLevel::error,
      called(waited) +
          " is destroyed while tasks wait for it. Let it outlive the tasks that use it.");
  std::abort();
}

}  // namespace weft::inline v0::detail
