// SPDX-License-Identifier: MIT
#include "describe.h"

#include <cstdlib>

#include "weft/base/log.h"

namespace weft::inline v0::detail {

std::string called(const char* type, const char* name) {
  return name ? std::string(type) + " '" + name + "'" : std::string("a ") + type;
}

std::string place(const std::source_location& at) {
  return std::string(at.file_name()) + ":" + std::to_string(at.line());
}

std::string loop_name(HomeIndex home) {
  return home == 0 ? std::string("no loop") : "loop " + std::to_string(home);
}

std::string standing(WaitPlace place) {
  return std::to_string(place.place) + " of " + std::to_string(place.of) + " waiting";
}

void describe_wait(TaskTreeCollector& tree, const char* type, const char* name, WaitPlace place,
                   const char* notified) {
  tree.node(called(type, name) + ", " + (place.place == 0 ? notified : standing(place)));
}

void abort_awaited(const char* type, const char* name) noexcept {
  log(LogLevel::error, called(type, name) +
                           " is destroyed while tasks wait for it. Let it outlive the tasks that "
                           "use it.");
  std::abort();
}

}  // namespace weft::inline v0::detail
