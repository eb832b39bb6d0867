// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::EpollIO: the driver over epoll. Edge-triggered: a descriptor is registered once, when
// it first has to wait, and never touched again until it is closed.
#include <cstdint>

#include "readiness_io.h"
#include "weft/base/unique_fd.h"

struct epoll_event;

namespace weft::inline v0::detail {

class EpollIO final : public ReadinessIO {
 public:
  explicit EpollIO(int wake_fd);
  ~EpollIO() override;
  [[nodiscard]] Driver driver() const noexcept override { return Driver::epoll; }
  void poll(std::int64_t timeout_ns) override;

 private:
  static constexpr std::int64_t kMillisecondsMax = 1 << 30;

  int watch(ReadinessEntry& entry) noexcept override;
  void unwatch(ReadinessEntry& entry) noexcept override;
  int wait(epoll_event* events, std::int64_t timeout_ns) noexcept;

  UniqueFd epoll_;
  bool has_pwait2_ = true;
};

}  // namespace weft::inline v0::detail
