// SPDX-License-Identifier: MIT
#pragma once
// weft::net::detail::ConnectRace: attempts to connect to the addresses of one host, by RFC 8305.
//
//     ConnectRace race(options);
//     race.expect(Family::v6);                      // for each lookup
//     … race.found(Family::v6, result);             // in a task among `lookups`
//     co_await race.run(std::move(lookups));
//
// Threads        one loop.
//
// Invariants
//   C1  winner_ is set at most once; who succeeds later closes its own connection.
//   C2  changed_ is set whenever an attempt or a lookup has ended.
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/core/nursery.h"
#include "weft/net/connect.h"
#include "weft/net/error.h"
#include "weft/sync/auto_event.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::net::detail {

class ConnectRace {
 public:
  explicit ConnectRace(ConnectOptions options) : options_(std::move(options)) {}
  ConnectRace(const ConnectRace&) = delete;
  ConnectRace& operator=(const ConnectRace&) = delete;

  // A lookup will call found().
  void expect(Family family) noexcept {
    ++lookups_;
    if (family == Family::v6) v6_expected_ = true;
  }
  void found(Family family, Result<std::vector<Address>> addresses);
  void add(std::span<const Address> addresses);

  [[nodiscard]] Task<Result<TcpStream>> run(std::vector<Task<void>> lookups);

 private:
  [[nodiscard]] Task<NurseryEnd> compete(Nursery& attempts, std::vector<Task<void>>& lookups);
  [[nodiscard]] Task<void> attempt(std::size_t index, Address where);
  // Whether an attempt may begin now; if not, but later without anything that happens: when.
  [[nodiscard]] bool may_begin(std::optional<TimePoint>& later);
  // Requires: there is one.
  [[nodiscard]] Address next() noexcept;
  void note(std::size_t index, std::error_code error) noexcept;
  [[nodiscard]] bool has_candidates() const noexcept { return !v6_.empty() || !v4_.empty(); }
  [[nodiscard]] std::error_code failure() const noexcept;

  const ConnectOptions options_;
  std::deque<Address> v6_, v4_;  // not tried yet
  bool v6_is_next_ = true;
  unsigned lookups_ = 0;      // that have not ended
  bool v6_expected_ = false;  // one of them is for IPv6
  std::optional<TimePoint> v4_alone_since_;

  std::size_t begun_ = 0, running_ = 0;
  TimePoint next_at_{};       // the last attempt has had its time then
  bool last_failed_ = false;  // it needs no more time
  std::optional<TcpStream> winner_;
  std::error_code first_error_;   // of an attempt
  std::error_code lookup_error_;  // the most telling one
  AutoEvent changed_{"connect"};
};

}  // namespace weft::inline v0::net::detail
