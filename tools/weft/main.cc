// SPDX-License-Identifier: MIT
// weft: the library at the command line. This file knows which commands there are.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "command.h"
#include "weft/base/log.h"

namespace weft::tool {
namespace {

constexpr std::array kCommands = {
    Command{"serve", "Serves the files of a directory over HTTP/1.1.", serve},
    Command{"get", "Fetches what is at a URL.", get},
    Command{"lock", "Runs a command while it holds a lock.", lock, kBadLockUsage},
};

// What it says in passing (which driver a loop took) is not for the terminal.
void log_to_terminal(LogLevel level, std::string_view message) noexcept {
  if (level == LogLevel::info) return;
  constexpr std::string_view kName = "weft: ";  // the library's messages say it themselves
  if (message.starts_with(kName)) message.remove_prefix(kName.size());
  std::fprintf(stderr, "weft: %.*s\n", static_cast<int>(message.size()), message.data());
}

std::string help() {
  std::vector<HelpRow> rows;
  for (const Command& command : kCommands) {
    rows.push_back({std::string(command.name), std::string(command.summary)});
  }
  std::string text = "usage: weft COMMAND [OPTION]...\n\n" + in_columns(rows) + "\n";
  rows = {{"-h, --help", "print this; weft COMMAND --help says more of one"},
          {"    --version", "print the version"}};
  return text + in_columns(rows);
}

int run(Words words) {
  if (words.empty()) throw BadUsage("weft: a command is missing: see weft --help");
  if (words[0] == "--help" || words[0] == "-h") {
    std::fputs(help().c_str(), stdout);
    return kDone;
  }
  if (words[0] == "--version") {
    std::puts("weft " WEFT_TOOL_VERSION);
    return kDone;
  }
  auto found = std::ranges::find(kCommands, words[0], &Command::name);
  if (found != kCommands.end()) return found->run(*found, words.subspan(1));

  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  std::string what = words[0].starts_with('-') ? "option " : "command ";
  what += "'" + std::string(words[0]) + "'";
  std::string_view meant = nearest(words[0], names);
  if (meant.empty()) throw BadUsage("weft: there is no " + what + ": see weft --help");
  throw BadUsage("weft: there is no " + what + ": did you mean " + std::string(meant) + "?");
}

// Somebody may have closed them, and then the next socket would be our standard output. Those that are missing are opened so that who
// writes or reads is refused, as without them; and a command that we start has them closed, as we had.
void occupy_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    int opened = ::open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (opened != fd) return;  // there is no such device: as it was
  }
}

int report(const char* what, int code) {
  std::fprintf(stderr, "%s\n", what);
  return code;
}

}  // namespace
}  // namespace weft::tool

int main(int argc, char** argv) {
  using namespace weft::tool;
  occupy_standard_streams();
  weft::set_log_sink(log_to_terminal);
  std::vector<std::string_view> words(argv + std::min(argc, 1), argv + argc);
  std::string who = "weft";
  ExitCode bad_usage = kBadUsage;
  if (!words.empty()) {
    auto named = std::ranges::find(kCommands, words[0], &Command::name);
    if (named != kCommands.end()) {
      who += " " + std::string(named->name);
      bad_usage = named->bad_usage;
    }
  }
  try {
    return run(words);
  } catch (const BadUsage& error) {
    return report(error.what(), bad_usage);
  } catch (const Failure& error) {
    return report((who + ": " + error.what()).c_str(), error.code());
  } catch (const std::exception& error) {
    return report((who + ": " + error.what()).c_str(), kFailed);
  }
}
