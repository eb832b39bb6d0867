// SPDX-License-Identifier: MIT
#include "request_log.h"

#include <optional>
#include <span>
#include <utility>

#include "command.h"
#include "output.h"
#include "weft/io/blocking.h"

namespace weft::tool {

void RequestLog::add(std::string_view line) {
  {
    std::lock_guard lock(mutex_);
    if (!is_read_) return;
    if (waiting_.size() + line.size() + 1 > kWaitingBytesMax) {
      ++left_out_;
      return;  // who writes is busy, and will look again
    }
    waiting_.append(line).append("\n");
  }
  has_come_.set();
}

std::string RequestLog::take() {
  std::lock_guard lock(mutex_);
  std::string taken = std::exchange(waiting_, {});
  if (std::size_t count = std::exchange(left_out_, 0); count > 0)
    taken += "(" + std::to_string(count) + " lines were left out: nobody read them)\n";
  return taken;
}

Task<void> RequestLog::run() {
  Output output(std::nullopt, false);
  while (true) {
    std::string text = take();
    if (text.empty()) {
      bool is_over = false;
      {
        std::lock_guard lock(mutex_);
        is_over = is_closed_ && waiting_.empty();
      }
      if (is_over) break;
      co_await has_come_.wait();
      continue;
    }
    auto write = [&](StopToken stop) {
      try {
        output.write(std::as_bytes(std::span(text)), stop);
        return true;
      } catch (const Failure&) {
        return false;  // a log is not worth a server
      }
    };
    bool written = co_await blocking(write);
    if (!written) {
      std::lock_guard lock(mutex_);
      is_read_ = false;
      waiting_.clear();
    }
  }
  is_written_.set();
}

void RequestLog::close() {
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  has_come_.set();
}

Task<void> RequestLog::until_written() { co_await is_written_.wait(); }

}  // namespace weft::tool
