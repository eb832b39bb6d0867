// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::Output: where what was fetched goes: standard output, or a file.
//
// A file is there when all of it is there, and not before: it is written under another name beside its own, which is
// given to it by keep(). A device or a FIFO is written to as it is.
//
// Threads        one at a time. All of it blocks.
// Errors         Failure.
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "weft/base/unique_fd.h"
#include "weft/core/scope.h"

namespace weft::tool {

class Output {
 public:
  // Nothing, or "-": standard output. Without `overwrite` a file that is there is not touched.
  Output(const std::optional<std::string>& path, bool overwrite);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  // What was not kept is gone.
  ~Output();

  // Whoever reads at the other end of a pipe may have stopped for good: a write that waits for them is given up, with a part
  // of the bytes written, when `stop` is asked for.
  void write(std::span<const std::byte> bytes, StopToken stop);
  void keep();
  [[nodiscard]] bool is_terminal() const noexcept;

 private:
  bool wait_for_room(StopToken stop) const;

  std::string path_, temporary_;  // temporary_ is empty: written to as it is
  bool overwrite_;
  unsigned mode_ = 0;
  bool may_wait_ = false;  // it is no file, but a pipe or a terminal
  UniqueFd owned_;
  int fd_ = 1;
};

}  // namespace weft::tool
