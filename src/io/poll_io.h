// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::PollIO: the driver over poll(), which every system has. O(n) in the descriptors that
// are waited for, per poll().
#include <poll.h>

#include <cstdint>
#include <vector>

#include "readiness_io.h"

namespace weft::inline v0::detail {

class PollIO final : public ReadinessIO {
 public:
  using ReadinessIO::ReadinessIO;
  ~PollIO() override;
  [[nodiscard]] Driver driver() const noexcept override { return Driver::poll; }
  void poll(std::int64_t timeout_ns) override;

 private:
  // Only what is waited for is asked about; so watching is nothing but noting it.
  int watch(ReadinessEntry& entry) noexcept override {
    entry.watched = true;
    return 0;
  }
  void unwatch(ReadinessEntry& entry) noexcept override { entry.watched = false; }

  std::vector<pollfd> asked_;             // the first is the wake-up
  std::vector<ReadinessEntry*> entries_;  // in step with asked_
};

}  // namespace weft::inline v0::detail
