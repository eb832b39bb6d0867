// SPDX-License-Identifier: MIT
#include "durable/sqlite/sqlite_table.h"

#include <sqlite3.h>

#include <utility>

#include "durable/sqlite/connection.h"
#include "durable/sqlite/lock_file.h"
#include "durable/sqlite/sqlite_look.h"
#include "durable/table_errors.h"
#include "weft/base/assert.h"

namespace weft::inline v0::durable::detail {

struct SqliteTable::Statements {
  explicit Statements(Connection& file) : file_(file) {}
  Connection& file_;

  Statement begin{file_, "BEGIN IMMEDIATE"};
  Statement commit{file_, "COMMIT"};
  Statement rollback{file_, "ROLLBACK"};

  // Two statements: for RETURNING, SQLite makes a table in memory each time.
  Statement next_token{file_, "SELECT next_token FROM meta"};
  Statement take_tokens{file_, "UPDATE meta SET next_token = next_token + ?"};

  Statement capacity{file_, "SELECT capacity FROM resources WHERE name = ?"};
  Statement add_resource{file_, "INSERT INTO resources VALUES (?, ?)"};
  Statement drop_resource{file_, "DELETE FROM resources WHERE name = ?"};
  ReportReader report{file_};

  Statement find{file_,
                 "SELECT place, resource, ends, first_token, token_count FROM tickets"
                 " WHERE session = ? AND number = ?"};
  // OR FAIL: for what it may have to take back of this statement alone, SQLite would get and clear 64 KiB of memory each time. Here
  // what fails ends the whole commit.
  Statement insert{
      file_,
      "INSERT OR FAIL INTO tickets (resource, place, session, number, weight,"
      " tokens_wanted, lease, ends, since, first_token, token_count, owner)"
      " VALUES (?1, (SELECT ifnull(max(place), 0) + 1 FROM tickets WHERE resource = ?1),"
      " ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"};
  Statement remove{file_, "DELETE FROM tickets WHERE resource = ? AND place = ?"};
  Statement renew{file_, "UPDATE tickets SET ends = ? + lease WHERE resource = ? AND place = ?"};
  Statement grant{file_,
                  "UPDATE tickets SET first_token = ?, token_count = ?, since = ?"
                  " WHERE resource = ? AND place = ?"};

  Statement revoke{file_, "DELETE FROM tickets WHERE resource = ? RETURNING session"};
  // O(tickets of the resource): one per process that uses it, more or less.
  Statement queue{file_,
                  "SELECT place, session, weight, tokens_wanted, token_count, ends FROM tickets"
                  " WHERE resource = ? ORDER BY place"};
  Statement ahead{file_,
                  "SELECT count(*), min(ends) FROM tickets WHERE resource = ? AND place < ?"};

  Statement resources_of{
      file_, "SELECT DISTINCT resource FROM tickets WHERE session = ? ORDER BY resource"};
  Statement tickets_of{file_,
                       "SELECT number, place, resource, first_token, token_count FROM tickets"
                       " WHERE session = ? ORDER BY resource, place"};
};

namespace {

std::uint32_t narrow(std::int64_t value) noexcept { return static_cast<std::uint32_t>(value); }

TokenBlock tokens_of(const Cursor& row, int first, int count) {
  return {static_cast<std::uint64_t>(row.integer(first)), narrow(row.integer(count))};
}

}  // namespace

// --- The file -------------------------------------------------------------------------------------------

LockResult<std::unique_ptr<SqliteTable>> SqliteTable::open(Options options) {
  try {
    return std::unique_ptr<SqliteTable>(new SqliteTable(std::move(options)));
  } catch (const LockError& error) {
    return std::unexpected(error);
  }
}

SqliteTable::SqliteTable(Options options)
    : is_alive_(std::move(options.is_alive)), file_(open_lock_file(options.path, options.step)) {
  if (options.pages_max > 0) {
    file_->execute(("PRAGMA max_page_count = " + std::to_string(options.pages_max)).c_str());
  }
  sql_ = std::make_unique<Statements>(*file_);
  begin_anew_after_boot(options);
  file_->execute("PRAGMA synchronous = NORMAL");  // commit() does the rest
}

SqliteTable::~SqliteTable() { rollback(); }

// Of the last boot's commits the last may be lost, and with it the tokens of a grant that somebody has read, and used, before
// it was synced. So tokens go on far beyond all that one boot can have lost. (A new file has seen no boot.)
//
// This commit itself must not be lost when somebody has seen it: tokens taken on top of it would be given again by the next boot,
// which would add as much to the same number. So it is made under synchronous=FULL, where SQLite syncs the log before it lets others
// see what is new in it (sqlite3WalFrames(): the sync, then the wal-index).
void SqliteTable::begin_anew_after_boot(const Options& options) {
  file_->execute("BEGIN IMMEDIATE");
  std::string last = file_->ask("SELECT boot_id FROM meta");
  if (last == options.boot_id) {
    forget_unused(options.now);
    file_->execute("COMMIT");
    return;
  }
  Statement(*file_, "UPDATE tickets SET ends = ?1 + lease, since = ?1").run(options.now);
  forget_unused(options.now);
  Statement(*file_, "UPDATE meta SET boot_id = ?, next_token = next_token + ?")
      .run(options.boot_id, last.empty() ? std::uint64_t{0} : kTokensSkippedByBoot);
  file_->execute("COMMIT");
}

// What processes have left that had no time to end. Who is alive, and has an unused resource, makes it anew when it enqueues.
void SqliteTable::forget_unused(std::int64_t now) {
  Statement(*file_,
            "DELETE FROM tickets WHERE ends <= ?1"
            " AND resource NOT IN (SELECT resource FROM tickets WHERE ends > ?1)")
      .run(now);
  file_->execute("DELETE FROM resources WHERE name NOT IN (SELECT resource FROM tickets)");
}

// --- Commits --------------------------------------------------------------------------------------------

LockResult<> SqliteTable::begin() {
  WEFT_ASSERT(!in_commit_, "one commit at a time");
  if (broken_) return std::unexpected(*broken_);
  try {
    sql_->begin.run();
  } catch (const LockError& error) {
    return std::unexpected(error);
  }
  in_commit_ = true;
  if (file_->is_in_place()) return {};
  rollback();
  broken_ = file_->removed();
  return std::unexpected(*broken_);
}

LockResult<> SqliteTable::commit(bool durable) {
  WEFT_ASSERT(in_commit_, "begin() comes first");
  LockResult<> done = attempt<void>([&]() -> LockResult<> {
    sql_->commit.run();
    return {};
  });
  if (!done) return done;
  in_commit_ = false;
  has_granted_ = false;
  if (!durable) return {};
  try {
    sync();
  } catch (const LockError& error) {
    broken_ = error;
    return std::unexpected(error);
  }
  return {};
}

// SQLite would sync in COMMIT under synchronous=FULL, and lets nobody choose within a transaction, where it first becomes
// known. So it runs under NORMAL, and this is what FULL adds: a sync of the log (https://www.sqlite.org/pragma.html,
// synchronous: "an additional sync operation of the WAL file happens after each transaction commit"). It reaches all
// earlier commits too: they lie before this one in the log, or a checkpoint has synced them into the file; and recovery
// takes no frame whose checksum, which runs over all frames from the log's start, does not fit (fileformat2.html, 4.1).
// After the COMMIT, so that other processes may write meanwhile.
//
// If it fails, what was committed is there and may not outlive a power cut, and by what Linux does with pages that
// it could not write, a second sync would say nothing. The table then refuses everything: to others it is as if this process
// had died. Its tickets end with their leases, and nobody was told that they are granted.
void SqliteTable::sync() {
  file_->step();
  sqlite3_file& log = file_->journal();
  file_->check(log.pMethods->xSync(&log, SQLITE_SYNC_NORMAL));
  file_->step();
}

void SqliteTable::rollback() noexcept {
  trouble_.reset();
  has_granted_ = false;
  if (!std::exchange(in_commit_, false)) return;
  if (!file_->in_transaction()) return;  // SQLite has done so itself: the disk is full, or broken
  try {
    sql_->rollback.run();
  } catch (const LockError& error) {
    broken_ = error;
  }
}

template <class R, class Fn>
LockResult<R> SqliteTable::attempt(Fn fn) {
  if (trouble_) return std::unexpected(*trouble_);
  try {
    return fn();
  } catch (const LockError& error) {
    trouble_ = error;
    return std::unexpected(error);
  }
}

template <class R, class Fn>
LockResult<R> SqliteTable::within(Fn fn) {
  if (in_commit_) return attempt<R>(fn);
  if (LockResult<> begun = begin(); !begun) return std::unexpected(begun.error());
  std::size_t told = told_.size();
  LockResult<R> result = attempt<R>(fn);
  LockResult<> committed = commit(has_granted_);
  if (committed) return result;
  rollback();
  told_.resize(told);
  return std::unexpected(committed.error());
}

// --- The rules ------------------------------------------------------------------------------------------

bool SqliteTable::is_alive(SessionId session) const { return !is_alive_ || is_alive_(session); }

std::optional<SqliteTable::Ticket> SqliteTable::find(SessionId session, TicketNumber number) {
  Cursor row = sql_->find.with(session, number);
  if (!row.next()) return std::nullopt;
  return Ticket{row.integer(0), row.text(1), row.integer(2), tokens_of(row, 3, 4)};
}

std::optional<std::uint32_t> SqliteTable::capacity_of(const std::string& resource) {
  Cursor row = sql_->capacity.with(resource);
  if (!row.next()) return std::nullopt;
  return narrow(row.integer(0));
}

TokenBlock SqliteTable::take_tokens(std::uint32_t count) {
  has_granted_ = true;
  Cursor row = sql_->next_token.with();
  bool there = row.next();
  WEFT_ASSERT(there, "meta has its row");
  TokenBlock tokens{static_cast<std::uint64_t>(row.integer(0)), count};
  sql_->take_tokens.run(count);
  return tokens;
}

SqliteTable::Load SqliteTable::settle(const std::string& resource, std::int64_t now) {
  std::vector<Row> rows;
  bool someone_waits = false;
  for (Cursor row = sql_->queue.with(resource); row.next();) {
    rows.push_back({row.integer(0), static_cast<SessionId>(row.integer(1)), narrow(row.integer(2)),
                    narrow(row.integer(3)), row.integer(4) == 0, row.integer(5)});
    someone_waits = someone_waits || rows.back().waits;
  }
  std::erase_if(rows, [&](const Row& row) {
    if (row.ends > now) return false;
    sql_->remove.run(resource, row.place);
    told_.push_back(row.session);
    return true;
  });
  if (someone_waits) grant_who_fits(resource, rows, now);
  Load load;
  load.tickets = static_cast<std::uint32_t>(rows.size());
  for (const Row& row : rows) load.weight += row.weight;
  return load;
}

void SqliteTable::grant_who_fits(const std::string& resource, std::vector<Row>& rows,
                                 std::int64_t now) {
  std::optional<std::uint32_t> capacity = capacity_of(resource);
  WEFT_ASSERT(capacity, "a ticket's resource is there");
  std::uint64_t used = 0;
  for (auto row = rows.begin(); row != rows.end();) {
    if (row->waits && !is_alive(row->session)) {
      sql_->remove.run(resource, row->place);
      row = rows.erase(row);
      continue;
    }
    used += row->weight;
    if (used > *capacity) return;
    if (row->waits) {
      TokenBlock tokens = take_tokens(row->tokens_wanted);
      sql_->grant.run(tokens.first, tokens.count, now, resource, row->place);
      told_.push_back(row->session);
    }
    ++row;
  }
}

LockResult<> SqliteTable::do_join(const std::string& resource, std::uint32_t capacity) {
  std::optional<std::uint32_t> theirs = capacity_of(resource);
  if (!theirs) sql_->add_resource.run(resource, capacity);
  if (theirs && *theirs != capacity) return other_capacity(resource, *theirs, capacity);
  return {};
}

LockResult<> SqliteTable::join(const std::string& resource, std::uint32_t capacity, std::int64_t) {
  return within<void>([&] { return do_join(resource, capacity); });
}

std::uint32_t SqliteTable::ahead_of(const Ticket& ticket) {
  Cursor row = sql_->ahead.with(ticket.resource, ticket.place);
  return row.next() ? narrow(row.integer(0)) : 0;
}

Placed SqliteTable::place(SessionId session, const TicketRequest& request, const Load& load,
                          std::int64_t now) {
  bool fits = load.weight + request.weight <= request.capacity;
  if (!fits && request.only_if_free) return {Standing::refused, {}, load.tickets};
  TokenBlock tokens;
  if (fits) tokens = take_tokens(request.tokens);
  std::int64_t lease = request.lease.count();
  sql_->insert.run(request.resource, session, request.number, request.weight, request.tokens, lease,
                   now + lease, now, tokens.first, tokens.count, request.owner);
  if (fits) return {Standing::granted, tokens, 0};
  return {Standing::queued, {}, load.tickets};
}

LockResult<Placed> SqliteTable::enqueue(SessionId session, const TicketRequest& request,
                                        std::int64_t now) {
  return within<Placed>([&]() -> LockResult<Placed> {
    if (LockResult<> joined = do_join(request.resource, request.capacity); !joined) {
      return std::unexpected(joined.error());
    }
    Load load = settle(request.resource, now);
    std::optional<Ticket> ticket = find(session, request.number);
    if (!ticket) return place(session, request, load, now);
    if (ticket->tokens.count > 0) return Placed{Standing::granted, ticket->tokens, 0};
    return Placed{Standing::queued, {}, ahead_of(*ticket)};
  });
}

LockResult<std::vector<TicketNumber>> SqliteTable::renew(SessionId session,
                                                         const std::vector<TicketNumber>& tickets,
                                                         std::int64_t now) {
  return within<std::vector<TicketNumber>>([&]() -> LockResult<std::vector<TicketNumber>> {
    std::vector<TicketNumber> gone;
    for (TicketNumber number : tickets) {
      std::optional<Ticket> ticket = find(session, number);
      if (ticket && ticket->ends > now) {
        sql_->renew.run(now, ticket->resource, ticket->place);
        continue;
      }
      if (ticket) settle(ticket->resource, now);
      gone.push_back(number);
    }
    return gone;
  });
}

LockResult<> SqliteTable::release(SessionId session, TicketNumber ticket, TokenBlock tokens,
                                  std::int64_t now) {
  return within<void>([&]() -> LockResult<> {
    std::optional<Ticket> found = find(session, ticket);
    bool ours = found && found->tokens.count > 0 && found->tokens == tokens && found->ends > now;
    if (ours) sql_->remove.run(found->resource, found->place);
    if (found) settle(found->resource, now);
    if (!ours) return no_such_ticket();
    return {};
  });
}

LockResult<> SqliteTable::withdraw(SessionId session, TicketNumber ticket, std::int64_t now) {
  return within<void>([&]() -> LockResult<> {
    if (std::optional<Ticket> found = find(session, ticket)) {
      sql_->remove.run(found->resource, found->place);
      settle(found->resource, now);
    }
    return {};
  });
}

LockResult<bool> SqliteTable::retire(const std::string& resource, std::int64_t now) {
  return within<bool>([&]() -> LockResult<bool> {
    if (settle(resource, now).tickets > 0) return false;
    sql_->drop_resource.run(resource);
    return true;
  });
}

LockResult<std::size_t> SqliteTable::revoke(const std::string& resource, std::int64_t now) {
  return within<std::size_t>([&]() -> LockResult<std::size_t> {
    settle(resource, now);
    std::size_t count = 0;
    for (Cursor gone = sql_->revoke.with(resource); gone.next(); ++count) {
      told_.push_back(static_cast<SessionId>(gone.integer(0)));
    }
    sql_->drop_resource.run(resource);
    return count;
  });
}

LockResult<std::vector<ResourceReport>> SqliteTable::report(
    const std::optional<std::string>& resource, std::int64_t now) {
  return within<std::vector<ResourceReport>>([&]() -> LockResult<std::vector<ResourceReport>> {
    return sql_->report.read(resource, now);
  });
}

LockResult<> SqliteTable::expire(SessionId session, std::int64_t now) {
  return within<void>([&]() -> LockResult<> {
    std::vector<std::string> resources;
    for (Cursor row = sql_->resources_of.with(session); row.next();) {
      resources.push_back(row.text(0));
    }
    for (const std::string& resource : resources) settle(resource, now);
    return {};
  });
}

LockResult<LockTable::State> SqliteTable::state(SessionId session) {
  return within<State>([&]() -> LockResult<State> {
    State state;
    for (Cursor row = sql_->tickets_of.with(session); row.next();) {
      TokenBlock tokens = tokens_of(row, 3, 4);
      bool granted = tokens.count > 0;
      state.tickets.push_back({static_cast<TicketNumber>(row.integer(0)), granted, tokens});
      if (granted) continue;
      std::string resource = row.text(2);
      Cursor before = sql_->ahead.with(resource, row.integer(1));
      if (!before.next() || before.integer(0) == 0) continue;
      std::int64_t end = before.integer(1);
      if (!state.expire_at || end < *state.expire_at) state.expire_at = end;
    }
    return state;
  });
}

}  // namespace weft::inline v0::durable::detail
