// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::HeldCommand: a program that runs while a lock is held, and is stopped with it.
//
// It has our three standard streams. Where there is a terminal it is in our process group, as a program that a shell starts
// is in the shell's job: it may read from the terminal, and Ctrl-Z stops both. Elsewhere it has a group of its own, so that what
// it starts is stopped with it.
//
// Threads        one loop with I/O.
// Cancellation   run(): SIGTERM to all of it, SIGKILL after the grace time to what is left; returns when it is gone.
// Errors         Failure: kCommandNotFound, kCommandNotRun.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/unique_fd.h"
#include "weft/core/task.h"
#include "weft/run/process.h"

namespace weft::tool {

class HeldCommand {
 public:
  HeldCommand(std::vector<std::string> words, std::chrono::nanoseconds grace);
  HeldCommand(const HeldCommand&) = delete;
  HeldCommand& operator=(const HeldCommand&) = delete;

  // `added`: to the environment, "NAME=value" each. Once.
  Task<ExitStatus> run(std::vector<std::string> added);
  // Returns: false if it does not run, and the signal is the caller's to deal with.
  bool pass(int signal) noexcept;

 private:
  [[nodiscard]] Process spawn(std::vector<std::string> added) const;
  [[nodiscard]] bool has_it_from_the_terminal(int signal) const noexcept;
  Task<void> stop();
  Task<void> wait_for_all();

  std::vector<std::string> words_;
  std::chrono::nanoseconds grace_;
  UniqueFd terminal_;
  std::optional<Process> process_;
};

}  // namespace weft::tool
