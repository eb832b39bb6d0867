// SPDX-License-Identifier: MIT
#pragma once
// What the store's parts say when an answer is not what it should be.
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "durable/etcd/etcd_keys.h"
#include "durable/etcd/etcd_messages.h"
#include "weft/durable/lock_error.h"

namespace weft::inline v0::durable::etcd {

[[nodiscard]] inline std::unexpected<LockError> malformed() {
  return std::unexpected(LockError(
      LockError::storage, "etcd's answer is not what it should be: is it etcd 3.4 or later?"));
}

[[nodiscard]] inline LockError capacity_mismatch(const std::string& resource, std::uint32_t wanted,
                                                 std::string_view there) {
  std::string text = "\"" + resource + "\" is used with capacity ";
  text.append(there).append(" by others, and with ").append(std::to_string(wanted)).append(" here");
  return LockError(LockError::mismatch, text);
}

[[nodiscard]] inline LockResult<> check_capacity(const std::string& resource, std::uint32_t wanted,
                                                 std::string_view there) {
  if (there == std::to_string(wanted)) return {};
  return std::unexpected(capacity_mismatch(resource, wanted, there));
}

// By the tickets that are there.
[[nodiscard]] inline LockResult<> check_capacities(const std::string& resource,
                                                   std::uint32_t wanted,
                                                   const std::vector<KeyValue>& queue) {
  for (const KeyValue& each : queue) {
    LockResult<> checked =
        check_capacity(resource, wanted, std::to_string(read_ticket(each.value).capacity));
    if (!checked) return checked;
  }
  return {};
}

// The answer to the which-th operation of a transaction, which is a range.
[[nodiscard]] inline std::optional<std::vector<KeyValue>> range_at(const Json& answer,
                                                                   std::size_t which) {
  const auto responses = answer["responses"].items();
  if (which >= responses.size() || !responses[which]["response_range"].is_object())
    return std::nullopt;
  return read_key_values(responses[which]["response_range"]);
}

}  // namespace weft::inline v0::durable::etcd
