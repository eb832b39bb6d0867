// SPDX-License-Identifier: MIT
#include "weft/durable/lock_statistics.h"

namespace weft::inline v0::durable {

std::chrono::microseconds DurationHistogram::quantile(double p) const noexcept {
  if (count_ == 0) return {};
  auto wanted = static_cast<std::uint64_t>(p * static_cast<double>(count_));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen > wanted || seen == count_) return std::chrono::microseconds(std::int64_t{1} << i);
  }
  return std::chrono::microseconds(std::int64_t{1} << (kBuckets - 1));
}

const char* to_string(LossReason reason) noexcept {
  switch (reason) {
    case LossReason::expired:
      return "expired";
    case LossReason::gone:
      return "gone";
    case LossReason::revoked:
      return "revoked";
    case LossReason::max_hold:
      return "max_hold";
  }
  return "unknown";
}

}  // namespace weft::inline v0::durable
