// SPDX-License-Identifier: MIT
#pragma once
// ClientPool: a Client's connections: those in use are counted, those that are kept wait in here.
//
// Invariants
//   Q1  of one origin never more than connections_per_origin_max connections are open: who has a permit has one, and
//       takes a kept one before it opens another.
//   Q2  a kept connection is_reusable(), holds no buffer, and has an alarm that closes it.
//   Q3  of one origin never more than waiters_per_origin_max wait for a permit, and none for longer than pool_timeout.
//   Q4  an origin is forgotten when it has neither a connection nor anybody who waits for one.
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "client_connection.h"
#include "weft/base/intrusive_list.h"
#include "weft/core/continuation.h"
#include "weft/sync/semaphore.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::http::detail {

class ClientPool;
class IdleConnection;

struct PoolOrigin {
  explicit PoolOrigin(std::string name, std::uint32_t connections_max)
      : key(std::move(name)), permits(connections_max, "connections of an origin") {}

  std::string key;
  Semaphore permits;
  std::size_t kept = 0;
  std::size_t waiting = 0;  // for a permit
};

// A connection that nobody uses.
class IdleConnection final : public ListNode<>, private weft::detail::Waker {
 public:
  IdleConnection(ClientPool& pool, std::shared_ptr<PoolOrigin> origin,
                 std::unique_ptr<ClientConnection> connection) noexcept
      : pool_(pool), origin_(std::move(origin)), connection_(std::move(connection)) {}

  void arm(std::chrono::milliseconds timeout);
  [[nodiscard]] const std::shared_ptr<PoolOrigin>& origin() const noexcept { return origin_; }
  [[nodiscard]] std::unique_ptr<ClientConnection> take() noexcept { return std::move(connection_); }

 private:
  void wake() noexcept override;  // it was not used for too long
  bool cancel_with(const CancelReason&) noexcept override { return false; }
  [[nodiscard]] weft::detail::Strand* waiting() const noexcept override { return nullptr; }

  ClientPool& pool_;
  std::shared_ptr<PoolOrigin> origin_;
  std::unique_ptr<ClientConnection> connection_;
  weft::detail::Alarm alarm_;
};

// A place among an origin's connections, and the connection in it. At its end that is kept, or closed.
class Lease {
 public:
  Lease() noexcept = default;
  Lease(std::shared_ptr<ClientPool> pool, std::shared_ptr<PoolOrigin> origin,
        SemaphorePermit permit) noexcept;
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { end(); }

  [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }
  [[nodiscard]] ClientConnection* connection() noexcept { return connection_.get(); }
  void put(std::unique_ptr<ClientConnection> connection) noexcept {
    connection_ = std::move(connection);
  }
  // A kept connection that is alive. Returns: whether there was one.
  bool take_kept() noexcept;
  void close_kept() noexcept;
  void end() noexcept;

 private:
  std::shared_ptr<ClientPool> pool_;
  std::shared_ptr<PoolOrigin> origin_;
  SemaphorePermit permit_;
  std::unique_ptr<ClientConnection> connection_;
};

class ClientPool final : public std::enable_shared_from_this<ClientPool> {
 public:
  explicit ClientPool(const ClientLimits& limits) : limits_(limits) {}
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;
  ~ClientPool() { close_kept(); }

  // Waits for a place, in line, for ClientLimits::pool_timeout. Errors: Error::pool_timeout, Error::pool_full.
  Task<Result<Lease>> lease(std::string key);
  // No more connections are kept.
  void close() noexcept {
    is_closed_ = true;
    close_kept();
  }
  void close_kept() noexcept;

  [[nodiscard]] const ClientLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }

 private:
  friend class IdleConnection;
  friend class Lease;

  std::unique_ptr<ClientConnection> take(PoolOrigin& origin) noexcept;
  void keep(const std::shared_ptr<PoolOrigin>& origin,
            std::unique_ptr<ClientConnection> connection) noexcept;
  void close_kept(PoolOrigin& origin) noexcept;
  // Closes it, unless it was taken out.
  void remove(IdleConnection& idle) noexcept;
  // Of somebody who has done with it (Q4).
  void forget(std::shared_ptr<PoolOrigin> origin) noexcept;

  const ClientLimits limits_;
  std::map<std::string, std::shared_ptr<PoolOrigin>> origins_;
  IntrusiveList<IdleConnection> idle_;  // the oldest first
  std::size_t in_use_ = 0;
  std::size_t kept_ = 0;
  bool is_closed_ = false;
};

}  // namespace weft::inline v0::http::detail
