// SPDX-License-Identifier: MIT
#pragma once
// A LockTable in a SQLite file, for the processes of one machine. MemoryTable's rules, as SQL.
//
// begin() takes the file's write lock, so what is read in a commit holds until its end. A commit of other processes is
// waited for, up to Connection::kBusyMax; then LockError::unreachable.
//
// A call that fails in the midst of a commit fails the commit: nothing of it happens.
//
// begin() looks whether the file is still the one that its path names: a file that was removed or replaced under its users would
// let others in beside who holds. Then the table refuses everything, so that nothing is renewed and every holder loses its lock
// before its lease has ended. (A stat, one or two microseconds; a commit takes a hundred.)
//
// Who waits and is dead (Options::is_alive) is removed when it is first in the queue, without regard to its lease. Who holds
// is never cut short: only its lease ends it.
//
// Power cuts     a commit is synced to the disk if it must be durable, and not otherwise; those before it are synced with it.
//                One that is lost brings back a ticket that was released, or a lease that was not renewed: after a boot every
//                lease begins anew in full, so nobody's becomes shorter, and tokens go on kTokensSkippedByBoot further.
// Size           a row per ticket and per resource in use, and those of a process that died until the next open(); pages that are free are used again, and the log is written back
//                each 4 MB.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weft/durable/lock_table.h"

namespace weft::inline v0::durable::detail {

class Connection;

class SqliteTable final : public LockTable {
 public:
  static constexpr std::uint64_t kTokensSkippedByBoot = std::uint64_t{1} << 32;
  struct Options {
    std::string path;
    std::int64_t now = 0;  // when it is opened
    std::string boot_id;   // of the boot that `now` is of
    // Whether a session's process lives. Never asked of whom it does not concern: holders.
    std::function<bool(SessionId)> is_alive;
    // Tests: between any two things that are done to the file.
    std::function<void()> step;
    // Tests: the file may not grow beyond; 0: as the disk has room.
    std::uint32_t pages_max = 0;
  };
  // Throws nothing: see open_lock_file() for the errors.
  [[nodiscard]] static LockResult<std::unique_ptr<SqliteTable>> open(Options options);
  ~SqliteTable() override;

  LockResult<> begin() override;
  LockResult<> commit(bool durable) override;
  void rollback() noexcept override;

  LockResult<> join(const std::string& resource, std::uint32_t capacity, std::int64_t now) override;
  LockResult<Placed> enqueue(SessionId session, const TicketRequest& request,
                             std::int64_t now) override;
  LockResult<std::vector<TicketNumber>> renew(SessionId session,
                                              const std::vector<TicketNumber>& tickets,
                                              std::int64_t now) override;
  LockResult<> release(SessionId session, TicketNumber ticket, TokenBlock tokens,
                       std::int64_t now) override;
  LockResult<> withdraw(SessionId session, TicketNumber ticket, std::int64_t now) override;
  LockResult<bool> retire(const std::string& resource, std::int64_t now) override;
  LockResult<std::size_t> revoke(const std::string& resource, std::int64_t now) override;
  LockResult<std::vector<ResourceReport>> report(const std::optional<std::string>& resource,
                                                 std::int64_t now) override;
  LockResult<> expire(SessionId session, std::int64_t now) override;
  LockResult<State> state(SessionId session) override;

 private:
  struct Statements;
  struct Ticket {
    std::int64_t place = 0;
    std::string resource;
    std::int64_t ends = 0;
    TokenBlock tokens;  // count 0: it waits
  };
  // A ticket in its queue.
  struct Row {
    std::int64_t place;
    SessionId session;
    std::uint32_t weight;
    std::uint32_t tokens_wanted;
    bool waits;
    std::int64_t ends;
  };
  // What a resource's tickets come to.
  struct Load {
    std::uint32_t tickets = 0;
    std::uint64_t weight = 0;
  };

  explicit SqliteTable(Options options);
  // fn() in the commit that is under way, or in one of its own. fn throws what SQLite says.
  template <class R, class Fn>
  LockResult<R> within(Fn fn);
  template <class R, class Fn>
  LockResult<R> attempt(Fn fn);

  // In a transaction.
  void forget_unused(std::int64_t now);
  void begin_anew_after_boot(const Options& options);
  void sync();
  // Those below are within a commit, and throw.
  [[nodiscard]] std::optional<Ticket> find(SessionId session, TicketNumber number);
  [[nodiscard]] std::optional<std::uint32_t> capacity_of(const std::string& resource);
  [[nodiscard]] LockResult<> do_join(const std::string& resource, std::uint32_t capacity);
  [[nodiscard]] Placed place(SessionId session, const TicketRequest& request, const Load& load,
                             std::int64_t now);
  [[nodiscard]] std::uint32_t ahead_of(const Ticket& ticket);
  [[nodiscard]] TokenBlock take_tokens(std::uint32_t count);
  // Removes whose lease has ended, and who waits first and is dead; and grants who fits.
  Load settle(const std::string& resource, std::int64_t now);
  void grant_who_fits(const std::string& resource, std::vector<Row>& rows, std::int64_t now);
  [[nodiscard]] bool is_alive(SessionId session) const;

  std::function<bool(SessionId)> is_alive_;
  std::unique_ptr<Connection> file_;
  std::unique_ptr<Statements> sql_;
  bool in_commit_ = false;
  std::optional<LockError> trouble_;  // of the commit that is under way
  std::optional<LockError> broken_;   // for good: see sync() and begin()
};

}  // namespace weft::inline v0::durable::detail
