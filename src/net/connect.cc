// SPDX-License-Identifier: MIT
#include "weft/net/connect.h"

#include "connect_race.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::net {

namespace detail {

void ConnectRace::add(std::span<const Address> addresses) {
  for (const Address& each : addresses) (each.is_v6() ? v6_ : v4_).push_back(each);
}

void ConnectRace::found(Family family, Result<std::vector<Address>> addresses) {
  --lookups_;
  if (family == Family::v6) v6_expected_ = false;
  if (addresses) {
    add(*addresses);
  } else if (!lookup_error_ || lookup_error_ == Error::host_not_found) {
    lookup_error_ = addresses.error();  // that it has no address of one family tells little
  }
  changed_.set();
}

Address ConnectRace::next() noexcept {
  bool v6 = v4_.empty() || (v6_is_next_ && !v6_.empty());
  v6_is_next_ = !v6;
  std::deque<Address>& from = v6 ? v6_ : v4_;
  Address address = from.front();
  from.pop_front();
  return address;
}

bool ConnectRace::may_begin(std::optional<TimePoint>& later) {
  if (!has_candidates()) return false;
  if (begun_ > 0) {  // section 5
    if (last_failed_ || now() >= next_at_) return true;
    later = next_at_;
    return false;
  }
  if (!v6_expected_ || !v6_.empty()) return true;
  // Section 3: IPv6 may come yet.
  if (!v4_alone_since_) v4_alone_since_ = now();
  later = *v4_alone_since_ + options_.resolution_delay;
  return now() >= *later;
}

void ConnectRace::note(std::size_t index, std::error_code error) noexcept {
  if (options_.attempts) (*options_.attempts)[index].error = error;
}

Task<void> ConnectRace::attempt(std::size_t index, Address where) {
  Result<TcpStream> made = co_await TcpStream::connect(where, options_.connection);
  --running_;
  if (!made) {
    note(index, made.error());
    if (!first_error_) first_error_ = made.error();
    if (index + 1 == begun_) last_failed_ = true;
  } else if (!winner_) {
    note(index, {});
    winner_.emplace(std::move(*made));
  }
  changed_.set();
}

Task<NurseryEnd> ConnectRace::compete(Nursery& attempts, std::vector<Task<void>>& lookups) {
  for (Task<void>& each : lookups) attempts.start(std::move(each));
  while (!winner_) {
    std::optional<TimePoint> later;
    if (may_begin(later)) {
      Address where = next();
      if (options_.attempts) {
        options_.attempts->push_back({where, make_error_code(std::errc::operation_in_progress)});
      }
      ++running_;
      last_failed_ = false;
      next_at_ = now() + options_.attempt_delay;
      attempts.start(attempt(begun_++, where));
    } else if (later) {
      (void)co_await deadline(*later, changed_.wait());
    } else if (running_ > 0 || lookups_ > 0) {
      co_await changed_.wait();
    } else {
      break;
    }
  }
  co_return cancel;
}

std::error_code ConnectRace::failure() const noexcept {
  if (first_error_) return first_error_;
  return lookup_error_ ? lookup_error_ : make_error_code(Error::host_not_found);
}

Task<Result<TcpStream>> ConnectRace::run(std::vector<Task<void>> lookups) {
  if (options_.attempts) options_.attempts->clear();
  auto body = [&](Nursery& attempts) { return compete(attempts, lookups); };
  co_await with_nursery(body);
  for (std::size_t i = 0; options_.attempts && i < begun_; ++i) {
    if ((*options_.attempts)[i].error == std::errc::operation_in_progress) {
      note(i, make_error_code(std::errc::operation_canceled));
    }
  }
  if (!winner_) co_return std::unexpected(failure());
  co_return std::move(*winner_);
}

}  // namespace detail

Task<Result<TcpStream>> connect_any(std::vector<Address> addresses, ConnectOptions options) {
  detail::ConnectRace race(std::move(options));
  race.add(addresses);
  co_return co_await race.run({});
}

Task<Result<TcpStream>> connect_any(std::vector<Address> addresses) {
  return connect_any(std::move(addresses), ConnectOptions());
}

}  // namespace weft::inline v0::net
