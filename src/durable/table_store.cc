// SPDX-License-Identifier: MIT
#include "durable/table_store.h"

#include <algorithm>
#include <random>

#include "weft/core/combinators.h"
#include "weft/core/shield.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::durable::detail {

namespace {

template <class R, class Fn>
class CallOf final : public TableCall {
 public:
  CallOf(SessionId session, bool wants_state, Fn& fn) noexcept
      : TableCall(session, wants_state), fn_(fn) {}
  LockResult<R> take() { return std::move(*result_); }

 private:
  void apply(LockTable& table, std::int64_t now) override { result_.emplace(fn_(table, now)); }
  void refuse(const LockError& error) override { result_.emplace(std::unexpected(error)); }

  Fn& fn_;
  std::optional<LockResult<R>> result_;
};

constexpr std::chrono::milliseconds kPauseAfterTrouble{200};

SessionId random_session() {
  std::random_device source;
  return (SessionId{source()} << 32 | source()) >> 1;  // a positive number wherever it is written
}

// One State per session: the calls of a batch are often of one.
LockResult<> add_states(LockTable& table, const std::vector<TableCall*>& calls,
                        const std::vector<SessionId>& told) {
  std::map<SessionId, LockTable::State> states;
  for (TableCall* call : calls) {
    bool changed = std::ranges::find(told, call->session()) != told.end();
    if (!call->wants_state() && !changed) continue;
    auto place = states.find(call->session());
    if (place == states.end()) {
      LockResult<LockTable::State> state = table.state(call->session());
      if (!state) return std::unexpected(state.error());
      place = states.emplace(call->session(), std::move(*state)).first;
    }
    call->state = place->second;
  }
  return {};
}

LockResult<> run_all(LockTable& table, const std::vector<TableCall*>& calls, LeaseClock clock,
                     std::vector<SessionId>& told) {
  if (LockResult<> begun = table.begin(); !begun) return begun;
  std::int64_t now = clock();  // not before: begin() waits for others
  for (TableCall* call : calls) call->run(table, now);
  told = table.take_told();
  if (LockResult<> added = add_states(table, calls, told); !added) return added;
  return table.commit(table.has_granted());
}

}  // namespace

std::vector<SessionId> carry_out(LockTable& table, const std::vector<TableCall*>& calls,
                                 LeaseClock clock, std::uint64_t number) {
  std::vector<SessionId> told;
  LockResult<> committed = run_all(table, calls, clock, told);
  if (!committed) {
    table.rollback();
    static_cast<void>(table.take_told());
    told.clear();
  }
  for (TableCall* call : calls) {
    call->commit = number;
    if (committed) continue;
    call->state.reset();
    call->fail(committed.error());
  }
  for (TableCall* call : calls) std::erase(told, call->session());  // they have it already
  for (TableCall* call : calls) call->done.set();                   // the last: it may be gone now
  return told;
}

TableStore::TableStore(std::string url) : url_(std::move(url)), session_(random_session()) {}

template <class R, class Fn, class Note>
Task<LockResult<R>> TableStore::perform(bool wants_state, Fn fn, Note note) {
  CallOf<R, Fn> call(session_, wants_state, fn);
  submit(call);
  co_await noncancellable(call.done.wait());  // T1
  LockResult<R> result = call.take();
  note(result, call.commit);
  if (call.state) heed(call.commit, *call.state);
  co_return result;
}
template <class R, class Fn>
Task<LockResult<R>> TableStore::perform(bool wants_state, Fn fn) {
  auto nothing = [](const LockResult<R>&, std::uint64_t) {};
  return perform<R>(wants_state, fn, nothing);
}

void TableStore::heed(std::uint64_t commit, const LockTable::State& state) {
  if (commit < heeded_) {
    // T2. What the newer one said of a ticket that was not known yet is to be asked for again.
    wake();
    return;
  }
  heeded_ = commit;
  std::vector<TicketNumber> gone;
  for (auto& [number, known] : known_) {
    if (known.since > commit) continue;
    auto found = std::ranges::find(state.tickets, number, &LockTable::Mine::number);
    if (found == state.tickets.end()) {
      gone.push_back(number);
    } else if (found->granted && !known.told) {
      known.told = true;
      listener_->granted(number, found->tokens);
    }
  }
  for (TicketNumber number : gone) {
    known_.erase(number);
    listener_->gone(number);
  }
  if (std::exchange(expire_at_, state.expire_at) != state.expire_at) rearmed_.set();
}

Task<LockResult<>> TableStore::open(Listener& listener) {
  listener_ = &listener;
  co_return LockResult<>();
}

Task<void> TableStore::close() { co_return; }

Task<void> TableStore::run() {
  while (true) {
    co_await next_round();
    auto look = [this](LockTable& table, std::int64_t now) { return table.expire(session_, now); };
    LockResult<> looked = co_await perform<void>(true, look);
    if (looked) continue;
    co_await sleep_for(kPauseAfterTrouble);
    wake();  // what woke us is still to be looked at
  }
}

Task<void> TableStore::next_round() {
  while (true) {
    auto left = std::chrono::nanoseconds::max();
    if (expire_at_)
      left = std::chrono::nanoseconds(std::max<std::int64_t>(*expire_at_ - lease_clock(), 0));
    auto [woken, rearmed, ended] = co_await any_of(woken_.wait(), rearmed_.wait(), sleep_for(left));
    if (woken || ended) co_return;
  }
}

Task<LockResult<>> TableStore::join(const std::string& resource, std::uint32_t capacity) {
  auto join = [&](LockTable& table, std::int64_t now) {
    return table.join(resource, capacity, now);
  };
  co_return co_await perform<void>(false, join);
}

Task<LockResult<Placed>> TableStore::enqueue(const TicketRequest& request) {
  auto enqueue = [&](LockTable& table, std::int64_t now) {
    return table.enqueue(session_, request, now);
  };
  // Before the State is heeded: another call of the same commit may have granted it.
  auto note = [&](const LockResult<Placed>& placed, std::uint64_t commit) {
    if (placed && placed->standing != Standing::refused) {
      known_[request.number] = {commit, placed->standing == Standing::granted};
    }
  };
  co_return co_await perform<Placed>(true, enqueue, note);
}

Task<LockResult<std::vector<TicketNumber>>> TableStore::renew(std::vector<TicketNumber> tickets) {
  auto renew = [&](LockTable& table, std::int64_t now) {
    return table.renew(session_, tickets, now);
  };
  auto note = [&](const LockResult<std::vector<TicketNumber>>& gone, std::uint64_t) {
    if (!gone) return;
    for (TicketNumber number : *gone) known_.erase(number);  // it is said by the answer
  };
  // With the State: who had news for us may have died before it woke us.
  co_return co_await perform<std::vector<TicketNumber>>(true, renew, note);
}

Task<LockResult<>> TableStore::release(TicketNumber ticket, TokenBlock tokens) {
  auto known = known_.extract(ticket);  // that it is gone is no news
  auto give_back = [&](LockTable& table, std::int64_t now) {
    return table.release(session_, ticket, tokens, now);
  };
  LockResult<> released = co_await perform<void>(false, give_back);
  if (!released && known) known_.insert(std::move(known));  // it may be there yet
  co_return released;
}

Task<LockResult<>> TableStore::withdraw(TicketNumber ticket) {
  known_.erase(ticket);
  auto withdraw = [&](LockTable& table, std::int64_t now) {
    return table.withdraw(session_, ticket, now);
  };
  co_return co_await perform<void>(false, withdraw);
}

Task<LockResult<bool>> TableStore::retire(const std::string& resource) {
  auto retire = [&](LockTable& table, std::int64_t now) { return table.retire(resource, now); };
  co_return co_await perform<bool>(false, retire);
}

Task<LockResult<std::size_t>> TableStore::revoke(const std::string& resource) {
  auto revoke = [&](LockTable& table, std::int64_t now) { return table.revoke(resource, now); };
  co_return co_await perform<std::size_t>(false, revoke);
}

Task<LockResult<std::vector<ResourceReport>>> TableStore::report(
    std::optional<std::string> resource) {
  auto report = [&](LockTable& table, std::int64_t now) { return table.report(resource, now); };
  co_return co_await perform<std::vector<ResourceReport>>(false, report);
}

}  // namespace weft::inline v0::durable::detail
