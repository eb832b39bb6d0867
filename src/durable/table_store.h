// SPDX-License-Identifier: MIT
#pragma once
// A LockStore made of a LockTable. Who derives says where calls are carried out (submit()), what time it is there, and how
// other sessions are woken; all the rest is here.
//
// A call lies in the frame of who asked. It is carried out in a commit, alone or with others, at once or on another thread;
// then done is set.
//
// Invariants
//   T1  a call that was submitted is waited for: the writer refers to the frame.
//   T2  commits are numbered, and a State of an older commit than one that was heeded is dropped; a ticket is not
//       gone by a State that is older than its enqueue().
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/task.h"
#include "weft/durable/lock_table.h"
#include "weft/sync/auto_event.h"
#include "weft/sync/event.h"

namespace weft::inline v0::durable::detail {

class TableCall {
 public:
  explicit TableCall(SessionId session, bool wants_state) noexcept
      : session_(session), wants_state_(wants_state) {}
  TableCall(const TableCall&) = delete;
  TableCall& operator=(const TableCall&) = delete;

  // What carry_out() does with one; who submits waits for done.
  void run(LockTable& table, std::int64_t now) { apply(table, now); }
  void fail(const LockError& error) { refuse(error); }
  Event done;

  [[nodiscard]] SessionId session() const noexcept { return session_; }
  [[nodiscard]] bool wants_state() const noexcept { return wants_state_; }
  // The session's, as of this commit: if it was wanted, or changed by one of the commit's calls.
  std::optional<LockTable::State> state;
  std::uint64_t commit = 0;

 protected:
  ~TableCall() = default;

 private:
  virtual void apply(LockTable& table, std::int64_t now) = 0;
  virtual void refuse(const LockError& error) = 0;

  SessionId session_;
  bool wants_state_;
};

// Nanoseconds on the clock of the leases. Asked within the commit, so that waiting for it does not make `now` old.
using LeaseClock = std::int64_t (*)();

// Carries out all of them in one commit, the `number`-th, and sets done. Returns: sessions to be woken.
[[nodiscard]] std::vector<SessionId> carry_out(LockTable& table,
                                               const std::vector<TableCall*>& calls,
                                               LeaseClock clock, std::uint64_t number);

class TableStore : public LockStore {
 public:
  Task<LockResult<>> open(Listener& listener) override;
  Task<void> run() override;
  Task<void> close() override;

  Task<LockResult<>> join(const std::string& resource, std::uint32_t capacity) override;
  Task<LockResult<Placed>> enqueue(const TicketRequest& request) override;
  Task<LockResult<std::vector<TicketNumber>>> renew(std::vector<TicketNumber> tickets) override;
  Task<LockResult<>> release(TicketNumber ticket, TokenBlock tokens) override;
  Task<LockResult<>> withdraw(TicketNumber ticket) override;
  Task<LockResult<bool>> retire(const std::string& resource) override;
  Task<LockResult<std::size_t>> revoke(const std::string& resource) override;
  Task<LockResult<std::vector<ResourceReport>>> report(
      std::optional<std::string> resource) override;
  [[nodiscard]] std::string url() const override { return url_; }

  [[nodiscard]] SessionId session() const noexcept { return session_; }
  // Somebody else's call has changed something of this session's. Any thread.
  void wake() noexcept { woken_.set(); }

 protected:
  explicit TableStore(std::string url);

  // Has the call carried out, and sets its done.
  virtual void submit(TableCall& call) = 0;

 private:
  // fn(table, now) in a commit; note(result, commit) before its news.
  template <class R, class Fn, class Note>
  Task<LockResult<R>> perform(bool wants_state, Fn fn, Note note);
  template <class R, class Fn>
  Task<LockResult<R>> perform(bool wants_state, Fn fn);
  void heed(std::uint64_t commit, const LockTable::State& state);
  // Until somebody has woken us, or a lease that we wait for has ended.
  [[nodiscard]] Task<void> next_round();

  struct Known {
    std::uint64_t since = 0;  // the commit that enqueued it
    bool told = false;        // that it is granted
  };

  std::string url_;
  SessionId session_;
  Listener* listener_ = nullptr;
  std::map<TicketNumber, Known> known_;
  std::uint64_t heeded_ = 0;  // the commit of the last State
  std::optional<std::int64_t> expire_at_;
  AutoEvent woken_{"a lock store's news"};
  AutoEvent rearmed_{"a lock store's timer"};
};

}  // namespace weft::inline v0::durable::detail
