// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::Interrupts: the signals that end a command, while this lives; then they have their own effect again, so that
// one more of them ends the process.
//
// A signal that is ignored stays so: nohup and shells have it ignored in what is not to end by it.
//
// Threads        as SignalSet.
#include <initializer_list>
#include <vector>

#include "weft/core/task.h"
#include "weft/run/signals.h"

namespace weft::tool {

class Interrupts {
 public:
  explicit Interrupts(std::initializer_list<int> numbers);

  // Returns: the number of the first that comes.
  [[nodiscard]] Task<int> next();

 private:
  std::vector<SignalSet> signals_;
};

}  // namespace weft::tool
