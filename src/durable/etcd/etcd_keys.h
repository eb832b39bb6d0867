// SPDX-License-Identifier: MIT
#pragma once
// Where the store's keys lie, and what is in them.
//
//   <prefix>/schema                                       "1"
//   <prefix>/r/<resource>/capacity                        "4"; lives for EtcdStore::kCapacityLease, and as its tickets say
//   <prefix>/r/<resource>/t/<session>/<number>            a ticket, as JSON; lives as long as its lease
//
// The resource is percent-encoded: no '/' in it. Session: 16 hexadecimal digits. A ticket is never written twice, so that
// the order of creation is that of arrival.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "durable/etcd/etcd_messages.h"
#include "weft/durable/lock_store.h"

namespace weft::inline v0::durable::etcd {

inline constexpr std::string_view kSchemaVersion = "1";

struct TicketKey {
  std::string resource;
  std::uint64_t session = 0;
  TicketNumber number = 0;
};

class Keys {
 public:
  explicit Keys(const std::string& prefix) : root_(prefix + "/") {}

  [[nodiscard]] std::string schema() const { return root_ + "schema"; }
  [[nodiscard]] std::string capacity(std::string_view resource) const {
    return of(resource) + "capacity";
  }
  [[nodiscard]] std::string ticket(std::string_view resource, std::uint64_t session,
                                   TicketNumber number) const;
  [[nodiscard]] Keyspan tickets(std::string_view resource) const {
    return Keyspan::below(of(resource) + "t/");
  }
  [[nodiscard]] Keyspan resource(std::string_view resource) const {
    return Keyspan::below(of(resource));
  }
  [[nodiscard]] Keyspan resources() const { return Keyspan::below(root_ + "r/"); }

  // Nothing: it is no ticket's.
  [[nodiscard]] std::optional<TicketKey> parse_ticket(std::string_view key) const;
  // Whose capacity it is. Nothing: nobody's.
  [[nodiscard]] std::optional<std::string> parse_capacity(std::string_view key) const;

 private:
  [[nodiscard]] std::string of(std::string_view resource) const;
  // What is behind "<root>r/", parted at the first '/'.
  [[nodiscard]] std::optional<std::pair<std::string, std::string_view>> split(
      std::string_view key) const;
  std::string root_;
};

struct TicketValue {
  std::string owner;
  std::uint32_t weight = 1, capacity = 1;
  std::chrono::system_clock::time_point enqueued;
};
[[nodiscard]] std::string write_ticket(const TicketValue& ticket);
// A ticket that cannot be read weighs as much as there is: nothing is granted beside what we do not understand.
[[nodiscard]] TicketValue read_ticket(std::string_view value);

}  // namespace weft::inline v0::durable::etcd
