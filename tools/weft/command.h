// SPDX-License-Identifier: MIT
#pragma once
// A command of the tool, and how it ends.
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft::tool {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,       // the world said no
  kBadUsage = 2,     // BadUsage, but see Command::bad_usage
  kRefused = 3,      // the server's status
  kTooSlow = 4,      // --timeout
  kSignalled = 128,  // and the number of the signal, as shells say it
  // weft lock's own, where they are not likely to be its command's; the last ones as timeout(1) and shells have them.
  kBusy = 120,
  kLockLost = 121,
  kNoEngine = 123,
  kNotInTime = 124,
  kBadLockUsage = 125,
  kCommandNotRun = 126,
  kCommandNotFound = 127,
};

// what() is one line that says what to do; main() prints it.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& why, ExitCode code = kFailed)
      : std::runtime_error(why), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

using Words = std::span<const std::string_view>;

struct Command {
  std::string_view name;     // "serve"
  std::string_view summary;  // a sentence
  // Returns: the exit code. Throws: BadUsage, Failure.
  int (*run)(const Command& self, Words words);
  ExitCode bad_usage = kBadUsage;  // what BadUsage ends with
};

int serve(const Command& self, Words words);
int get(const Command& self, Words words);
int lock(const Command& self, Words words);

}  // namespace weft::tool
