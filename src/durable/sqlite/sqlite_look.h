// SPDX-License-Identifier: MIT
#pragma once
// A lock file as who only looks sees it: see weft/durable/look.h.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "durable/sqlite/connection.h"
#include "weft/durable/look.h"

namespace weft::inline v0::durable::detail {

// Its tickets. In a transaction.
class ReportReader {
 public:
  explicit ReportReader(Connection& file) : file_(file) {}
  // boot_is_past: the times are of a clock that is gone. Every lease begins anew with the next who opens the file.
  [[nodiscard]] std::vector<ResourceReport> read(const std::optional<std::string>& resource,
                                                 std::int64_t now, bool boot_is_past = false);

 private:
  Connection& file_;
  Statement resources_{file_, "SELECT name, capacity FROM resources ORDER BY name"};
  Statement tickets_{file_,
                     "SELECT owner, token_count, first_token, weight, since, ends, lease"
                     " FROM tickets WHERE resource = ? ORDER BY place"};
};

[[nodiscard]] Task<LockResult<StoreView>> look_at_file(std::string url,
                                                       std::optional<std::string> resource);

}  // namespace weft::inline v0::durable::detail
