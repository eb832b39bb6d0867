// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::RequestLog: lines for standard output, written beside the loops that they are about: whoever reads the log may stop
// reading (a pager, a terminal after Ctrl-S), and the others are answered all the same.
//
// What there is no room for is left out, and the log says how many lines. If nobody will ever read (a pipe that is closed), nothing is
// kept any more.
//
// Threads        add() and close(): any. The others: one loop.
// Cancellation   run() and until_written() are cancel points; a line may be cut off by it.
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

#include "weft/core/task.h"
#include "weft/sync/auto_event.h"
#include "weft/sync/event.h"

namespace weft::tool {

class RequestLog {
 public:
  static constexpr std::size_t kWaitingBytesMax = 1024 * 1024;

  void add(std::string_view line);
  // Writes, until it is closed and all is written.
  [[nodiscard]] Task<void> run();
  void close();
  // Until run() has ended.
  [[nodiscard]] Task<void> until_written();

 private:
  // What is there to be written; empty: nothing.
  std::string take();

  std::mutex mutex_;  // held for a moment, and never across a wait
  std::string waiting_;
  std::size_t left_out_ = 0;
  bool is_closed_ = false;
  bool is_read_ = true;
  AutoEvent has_come_;
  Event is_written_;
};

}  // namespace weft::tool
