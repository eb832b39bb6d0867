// SPDX-License-Identifier: MIT
#include "pool.h"

#include <new>
#include <optional>
#include <utility>

#include "weft/core/thread_state.h"
#include "weft/http/error.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::http::detail {

void IdleConnection::arm(std::chrono::milliseconds timeout) {
  alarm_.arm(weft::detail::after(timeout), weft::detail::Continuation(*this));
}

void IdleConnection::wake() noexcept { pool_.remove(*this); }

// --- Lease ------------------------------------------------------------------------------------------

Lease::Lease(std::shared_ptr<ClientPool> pool, std::shared_ptr<PoolOrigin> origin,
             SemaphorePermit permit) noexcept
    : pool_(std::move(pool)), origin_(std::move(origin)), permit_(std::move(permit)) {
  ++pool_->in_use_;
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  end();
  pool_ = std::move(other.pool_);
  origin_ = std::move(other.origin_);
  permit_ = std::move(other.permit_);
  connection_ = std::move(other.connection_);
  return *this;
}

bool Lease::take_kept() noexcept {
  connection_ = pool_->take(*origin_);
  return connection_ != nullptr;
}

void Lease::close_kept() noexcept { pool_->close_kept(*origin_); }

void Lease::end() noexcept {
  if (!pool_) return;
  std::shared_ptr<ClientPool> pool = std::exchange(pool_, nullptr);
  --pool->in_use_;
  if (connection_) {
    connection_->skip_buffered_body();
    // Off any loop there is no clock that could ever close it.
    bool is_kept = connection_->is_reusable() && !pool->is_closed_ &&
                   pool->limits_.idle_connections_max > 0 && weft::detail::thread_state().executor;
    if (is_kept) {
      pool->keep(origin_, std::move(connection_));
    } else {
      connection_.reset();
    }
  }
  permit_.release();
  pool->forget(std::move(origin_));
}

// --- ClientPool -------------------------------------------------------------------------------------

Task<Result<Lease>> ClientPool::lease(std::string key) {
  std::shared_ptr<PoolOrigin>& known = origins_[key];
  if (!known) known = std::make_shared<PoolOrigin>(key, limits_.connections_per_origin_max);
  struct Waiting {
    ClientPool& pool;
    std::shared_ptr<PoolOrigin> origin;
    Waiting(ClientPool& in, std::shared_ptr<PoolOrigin> on) : pool(in), origin(std::move(on)) {
      ++origin->waiting;
    }
    ~Waiting() {
      if (origin) pool.forget(done());
    }
    std::shared_ptr<PoolOrigin> done() noexcept {
      --origin->waiting;
      return std::move(origin);
    }
  } waiting(*this, known);
  // Who finds a place does not wait, and has no clock to set.
  std::optional<SemaphorePermit> permit = waiting.origin->permits.try_acquire();
  if (!permit) {
    if (waiting.origin->waiting > limits_.waiters_per_origin_max) {
      co_return std::unexpected(make_error_code(Error::pool_full));
    }
    auto granted = co_await timeout(limits_.pool_timeout, waiting.origin->permits.acquire());
    if (!granted) co_return std::unexpected(make_error_code(Error::pool_timeout));
    permit = std::move(*granted);
  }
  co_return Lease(shared_from_this(), waiting.done(), std::move(*permit));
}

// The newest one: it is the least likely to have been closed. One that has is closed here too.
std::unique_ptr<ClientConnection> ClientPool::take(PoolOrigin& origin) noexcept {
  for (auto at = idle_.end(); origin.kept > 0 && at != idle_.begin();) {
    IdleConnection& idle = *--at;
    if (idle.origin().get() != &origin) continue;
    ++at;
    std::unique_ptr<ClientConnection> connection = idle.take();
    remove(idle);
    if (connection->is_alive()) return connection;
  }
  return nullptr;
}

void ClientPool::keep(const std::shared_ptr<PoolOrigin>& origin,
                      std::unique_ptr<ClientConnection> connection) noexcept {
  if (kept_ == limits_.idle_connections_max) remove(idle_.front());
  auto* idle = new (std::nothrow) IdleConnection(*this, origin, std::move(connection));
  if (!idle) return;
  ++origin->kept;
  ++kept_;
  idle_.push_back(*idle);
  idle->arm(limits_.idle_timeout);
}

void ClientPool::remove(IdleConnection& idle) noexcept {
  std::shared_ptr<PoolOrigin> origin = idle.origin();
  --origin->kept;
  --kept_;
  idle.unlink();
  delete &idle;
  forget(std::move(origin));
}

void ClientPool::close_kept() noexcept {
  while (!idle_.empty()) remove(idle_.front());
}

void ClientPool::close_kept(PoolOrigin& origin) noexcept {
  for (auto at = idle_.begin(); at != idle_.end();) {
    IdleConnection& idle = *at;
    ++at;
    if (idle.origin().get() == &origin) remove(idle);
  }
}

void ClientPool::forget(std::shared_ptr<PoolOrigin> origin) noexcept {
  constexpr long kMineAndTheMaps = 2;
  if (origin.use_count() != kMineAndTheMaps) return;
  auto found = origins_.find(origin->key);
  if (found != origins_.end()) origins_.erase(found);
}

}  // namespace weft::inline v0::http::detail
