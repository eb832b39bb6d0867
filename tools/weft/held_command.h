// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::HeldCommand: a program that runs while a lock is held, and is stopped with it.
//
// It has what a shell would have given it: our descriptors, and the signals that were ignored when we began. Where there is a
// terminal it is in our process group, as a program that a shell starts is in the shell's job: it may read from the terminal, so
// may who stands with us in a pipeline, and Ctrl-Z stops all of them. Elsewhere it has a group of its own.
//
// What it has started is stopped with it, in whichever group or session it is: orphans become our children
// (PR_SET_CHILD_SUBREAPER), so all of them are found below us.
//
// Threads        one loop with I/O.
// Cancellation   run(): SIGTERM to all of it, SIGKILL after the grace time to what is left; returns when it is gone. If it has
//                ended by itself, what it left running is meant to.
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
  // It has run, and nobody is left who is to be stopped.
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }

 private:
  [[nodiscard]] Process spawn(std::vector<std::string> added) const;
  [[nodiscard]] bool has_it_from_the_terminal(int signal) const noexcept;
  Task<void> stop();
  Task<void> wait_for_all();
  void signal_all(int signal) noexcept;

  std::vector<std::string> words_;
  std::chrono::nanoseconds grace_;
  std::vector<int> ignored_;  // when we began
  UniqueFd terminal_;
  std::optional<Process> process_;
  bool is_over_ = false;
};

}  // namespace weft::tool
