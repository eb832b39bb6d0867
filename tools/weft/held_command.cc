// SPDX-License-Identifier: MIT
#include "held_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "command.h"
#include "weft/core/try.h"
#include "weft/time/sleep.h"
#include "weft/time/timeout.h"

namespace weft::tool {

namespace {

constexpr std::chrono::milliseconds kGroupPause{
    10};  // between two looks at what is left of a group

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
      terminal_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {}

Process HeldCommand::spawn(std::vector<std::string> added) const {
  ProcessOptions options(words_.front(), {words_.begin() + 1, words_.end()});
  options.environment = environment_with(std::move(added));
  options.own_group = !terminal_;
  Result<Process> spawned = Process::spawn(std::move(options));
  if (!spawned) fail_to_run(words_.front(), spawned.error());
  return std::move(*spawned);
}

Task<ExitStatus> HeldCommand::run(std::vector<std::string> added) {
  process_ = spawn(std::move(added));
  auto wait = [this]() -> Task<Result<ExitStatus>> { return process_->wait(); };
  auto stop_it = [this]() -> Task<void> { return stop(); };
  Result<ExitStatus> status = co_await try_(wait).finally(stop_it);
  co_return or_throw(status);
}

// Ctrl-C goes to all of the terminal's foreground group: the command would hear of it twice.
bool HeldCommand::has_it_from_the_terminal(int signal) const noexcept {
  return terminal_ && (signal == SIGINT || signal == SIGQUIT) &&
         ::tcgetpgrp(terminal_.get()) == ::getpgrp();
}

bool HeldCommand::pass(int signal) noexcept {
  if (!process_) return false;
  if (!has_it_from_the_terminal(signal)) static_cast<void>(process_->kill(signal));
  return true;
}

Task<void> HeldCommand::stop() {
  if (process_->try_wait()) co_return;  // it has ended by itself: what it left running is meant to
  static_cast<void>(process_->kill(SIGTERM));
  auto in_time = co_await timeout(grace_, wait_for_all());
  if (in_time) co_return;
  static_cast<void>(process_->kill(SIGKILL));
  // Its number is not given anew while there is somebody in the group that has it.
  if (!terminal_) ::kill(-process_->id(), SIGKILL);
  static_cast<void>(co_await process_->wait());
}

Task<void> HeldCommand::wait_for_all() {
  static_cast<void>(co_await process_->wait());
  while (!terminal_ && ::kill(-process_->id(), 0) == 0) co_await sleep_for(kGroupPause);
}

}  // namespace weft::tool
