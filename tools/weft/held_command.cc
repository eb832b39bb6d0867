// SPDX-License-Identifier: MIT
#include "held_command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "command.h"
#include "weft/core/try.h"
#include "weft/time/sleep.h"
#include "weft/time/timeout.h"

namespace weft::tool {

namespace {

constexpr std::chrono::milliseconds kLookPause{10};  // between two looks at what is left of it
constexpr int kKillRounds = 100;  // what starts others faster than that is not stopped

// This process's, where what is added is not there already.
std::vector<std::string> environment_with(std::vector<std::string> added) {
  std::vector<std::string> all = std::move(added);
  std::size_t count = all.size();
  for (char** each = environ; *each; ++each) {
    std::string_view name =
        std::string_view(*each).substr(0, std::string_view(*each).find('=') + 1);
    bool again = std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count),
                             [&](const std::string& ours) { return ours.starts_with(name); });
    if (!again) all.emplace_back(*each);
  }
  return all;
}

std::vector<int> ignored_signals() {
  std::vector<int> ignored;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now{};
    bool is = ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    if (is && signal != SIGCHLD) ignored.push_back(signal);
  }
  return ignored;
}

// From /proc/PID/stat: "4711 (a name) S 4700 …", where the name may have spaces and brackets in it. 0: it has ended.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  std::size_t name_end = text.rfind(')');
  char state = 0;
  pid_t parent = 0;
  if (name_end == text.npos) return 0;
  if (std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) != 2) return 0;
  return state == 'Z' || state == 'X' ? 0 : parent;
}

// All that run below this process. O(processes of the machine).
std::vector<pid_t> descendants() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const auto& each : std::filesystem::directory_iterator("/proc", error)) {
    pid_t id = std::atoi(each.path().filename().c_str());
    if (id == 0) continue;
    if (pid_t parent = parent_of(each.path())) children.emplace(parent, id);
  }
  std::vector<pid_t> all{::getpid()};
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto [begin, end] = children.equal_range(all[i]);
    for (; begin != end; ++begin) all.push_back(begin->second);
  }
  all.erase(all.begin());
  return all;
}

[[noreturn]] void fail_to_run(const std::string& program, const std::error_code& error) {
  if (error == std::errc::no_such_file_or_directory) {
    throw Failure("there is no program '" + program + "': look at its spelling, and at PATH",
                  kCommandNotFound);
  }
  throw Failure("cannot run '" + program + "': " + error.message(), kCommandNotRun);
}

}  // namespace

HeldCommand::HeldCommand(std::vector<std::string> words, std::chrono::nanoseconds grace)
    : words_(std::move(words)),
      grace_(grace),
      ignored_(ignored_signals()),
      terminal_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  std::signal(SIGCHLD, SIG_DFL);  // who has it ignored is not told how a child has ended
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Process HeldCommand::spawn(std::vector<std::string> added) const {
  ProcessOptions options(words_.front(), {words_.begin() + 1, words_.end()});
  options.environment = environment_with(std::move(added));
  options.own_group = !terminal_;
  options.keep_descriptors = true;
  options.keep_ignored = ignored_;
  Result<Process> spawned = Process::spawn(std::move(options));
  if (!spawned) fail_to_run(words_.front(), spawned.error());
  return std::move(*spawned);
}

Task<ExitStatus> HeldCommand::run(std::vector<std::string> added) {
  process_ = spawn(std::move(added));
  auto wait = [this]() -> Task<Result<ExitStatus>> { return process_->wait(); };
  auto stop_it = [this]() -> Task<void> {
    co_await stop();
    is_over_ = true;
  };
  Result<ExitStatus> status = co_await try_(wait).finally(stop_it);
  co_return or_throw(status);
}

// Ctrl-C goes to all of the terminal's foreground group: the command would hear of it twice.
bool HeldCommand::has_it_from_the_terminal(int signal) const noexcept {
  return terminal_ && (signal == SIGINT || signal == SIGQUIT) &&
         ::tcgetpgrp(terminal_.get()) == ::getpgrp();
}

bool HeldCommand::pass(int signal) noexcept {
  if (!process_ || is_over_) return false;
  if (!has_it_from_the_terminal(signal)) static_cast<void>(process_->kill(signal));
  return true;
}

Task<void> HeldCommand::stop() {
  if (process_->try_wait()) co_return;  // by itself: what it left running is meant to
  signal_all(SIGTERM);
  auto in_time = co_await timeout(grace_, wait_for_all());
  if (in_time) co_return;
  for (int round = 0; round < kKillRounds; ++round) {
    signal_all(SIGKILL);
    auto gone = co_await timeout(kLookPause, wait_for_all());
    if (gone) co_return;
  }
  static_cast<void>(co_await process_->wait());
}

// Once to each: many programs end at once by the second.
void HeldCommand::signal_all(int signal) noexcept {
  bool told = process_->kill(signal).has_value();  // not if it has ended before the others
  pid_t id = process_->id();
  for (pid_t each : descendants()) {
    bool has_it = told && (each == id || (!terminal_ && ::getpgid(each) == id));
    if (!has_it) ::kill(each, signal);
  }
}

Task<void> HeldCommand::wait_for_all() {
  static_cast<void>(co_await process_->wait());
  while (!descendants().empty()) co_await sleep_for(kLookPause);
}

}  // namespace weft::tool
