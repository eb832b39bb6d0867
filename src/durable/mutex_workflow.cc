// SPDX-License-Identifier: MIT
#include "durable/mutex_workflow.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "durable/engine_state.h"
#include "durable/time_text.h"
#include "weft/base/assert.h"
#include "weft/base/log.h"
#include "weft/core/combinators.h"
#include "weft/core/executor.h"
#include "weft/core/forwarded_awaiter.h"
#include "weft/time/interval.h"

namespace weft::inline v0::durable::detail {

namespace {

using std::chrono::nanoseconds;
using Phase = HeldLock::Phase;

// Parts of a lease.
constexpr std::int64_t kRenewAt = 3;  // it is renewed after a third
constexpr std::int64_t kMargin =
    8;  // an eighth before its end it is lost: time for the holder to end
constexpr std::int64_t kRenewAgain = 12;  // after a renewal that failed
constexpr std::int64_t kHandUntil = 2;    // in its second half it is renewed before anybody gets it

// While something is held: timers stand still in a suspend, leases do not, and nobody says that it is over.
constexpr nanoseconds kLookAgain = std::chrono::seconds(1);

constexpr std::size_t kHoldersShown = 4;  // in the task tree

// Between two attempts at what must be done in the end.
class Backoff {
 public:
  [[nodiscard]] nanoseconds next() noexcept {
    return std::exchange(pause_, std::min(pause_ * 2, kMax));
  }

 private:
  static constexpr nanoseconds kMax = std::chrono::seconds(1);
  nanoseconds pause_ = std::chrono::milliseconds(20);
};

std::int64_t plus(std::int64_t time, nanoseconds duration) noexcept {
  return duration.count() > INT64_MAX - time ? INT64_MAX : time + duration.count();
}

const char* what_of(LossReason reason) noexcept {
  switch (reason) {
    case LossReason::expired:
      return "its lease ran out before it could be renewed";
    case LossReason::gone:
      return "its lease had ended in the store";
    case LossReason::revoked:
      return "it was revoked";
    case LossReason::max_hold:
      return "it was held for longer than max_hold";
  }
  return "";
}

// "3 lost (1 expired, 2 revoked)".
std::string describe_losses(const LossCounts& lost) {
  std::uint64_t all = 0;
  std::string reasons;
  for (std::size_t i = 0; i < kLossReasons; ++i) {
    if (lost[i] == 0) continue;
    all += lost[i];
    if (!reasons.empty()) reasons += ", ";
    reasons += std::to_string(lost[i]) + " " + to_string(static_cast<LossReason>(i));
  }
  std::string text = std::to_string(all) + " lost";
  return all == 0 ? text : text + " (" + reasons + ")";
}

// In the task tree: the workflow as it is when somebody looks.
template <class A>
class DescribedAwaiter : public ForwardedAwaiter<A> {
 public:
  DescribedAwaiter(const MutexWorkflow& workflow, A&& awaitable)
      : ForwardedAwaiter<A>(std::forward<A>(awaitable)), workflow_(workflow) {}
  void await_introspect(auto& tree) noexcept {
    tree.annotate(workflow_.describe());
    tree.child(this->inner());
  }

 private:
  const MutexWorkflow& workflow_;
};
template <class A>
class Described {
 public:
  Described(const MutexWorkflow& workflow, A&& awaitable)
      : workflow_(workflow), awaitable_(std::forward<A>(awaitable)) {}
  DescribedAwaiter<A> operator co_await() && {
    return DescribedAwaiter<A>(workflow_, std::forward<A>(awaitable_));
  }

 private:
  const MutexWorkflow& workflow_;
  A awaitable_;
};

}  // namespace

MutexWorkflow::MutexWorkflow(EngineState& engine, std::string resource, std::uint32_t capacity)
    : engine_(engine), resource_(std::move(resource)), capacity_(capacity) {}

MutexWorkflow::~MutexWorkflow() = default;

std::int64_t MutexWorkflow::now() const { return engine_.store().lease_clock(); }

// --- The loop ---------------------------------------------------------------------------------------

Task<void> MutexWorkflow::run(std::shared_ptr<MutexWorkflow> self) {
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> { return self->serve(nursery); };
  auto serving = with_nursery(body);
  co_await Described<decltype(serving)>(*self, std::move(serving));
}

std::string MutexWorkflow::describe() const {
  std::string text = resource_ + ":";
  std::size_t shown = 0;
  for (const auto& [number, ticket] : tickets_) {
    if (!ticket.holder) continue;
    if (++shown > kHoldersShown) continue;
    text += shown == 1 ? " held with token " : ", and with ";
    text += std::to_string(ticket.holder->token.load(::weft::detail::relaxed)) + " by " +
            ticket.holder->order.options->owner;
    if (ticket.holder->phase() == Phase::lost) text += " (lost)";
  }
  if (shown == 0) text += " held by nobody here";
  if (shown > kHoldersShown) text += ", and " + std::to_string(shown - kHoldersShown) + " more";
  std::size_t waiting = 0;
  for (const Line& line : lines_) waiting += line.waiting_count;
  text += ", " + std::to_string(waiting) + " wait, " + describe_losses(lost_);
  if (waited_.count() > 0) text += ", waited p99 " + brief(waited_.quantile(0.99));
  if (was_held_.count() > 0) text += ", held p99 " + brief(was_held_.quantile(0.99));
  if (trouble_) text += std::string("; ") + trouble_->what();
  return text;
}

Task<NurseryEnd> MutexWorkflow::serve(Nursery& nursery) {
  struct Requests {
    Nursery*& place;
    ~Requests() { place = nullptr; }
  } requests{requests_};
  requests_ = &nursery;
  Interval idle(std::max(idle_timeout_, nanoseconds(1)));
  while (true) {
    step();
    if (!is_idle()) {
      co_await any_of(changed_.wait(), sleep_for(until_next_alarm()));
      continue;
    }
    idle.restart(idle_timeout_);
    if (!closing_) {
      auto [changed, tick] = co_await any_of(changed_.wait(), idle.tick());
      if (changed && !closing_) continue;
    }
    // If somebody comes meanwhile, his ticket makes the resource anew; if somebody opens it, he has made it anew, and we are wanted.
    kept_ = false;
    LockResult<bool> retired = co_await engine_.store().retire(resource_);
    if (!retired)
      log(LogLevel::warning,
          "weft: durable: '" + resource_ + "' is left in the store: " + retired.error().what());
    if (is_idle() && !kept_) break;
  }
  engine_.forget(*this);  // D6: no co_await since is_idle()
  co_return join;
}

void MutexWorkflow::keep(nanoseconds idle_timeout) {
  idle_timeout_ = std::max(idle_timeout_, idle_timeout);
  kept_ = true;
  changed_.set();
}

void MutexWorkflow::close() {
  closing_ = true;
  for (Line& line : lines_) {
    while (!line.waiting.empty()) abandon(line.waiting.front());
  }
  for (auto& [number, ticket] : tickets_) {
    if (ticket.holder) abandon(*ticket.holder);
  }
  changed_.set();
}

void MutexWorkflow::step() {
  check_leases();
  for (auto& [number, ticket] : tickets_) {
    while (ticket.is_free() && ticket.line->waiting_count > 0 && may_pass_on(ticket) &&
           hand(ticket)) {
    }
  }
  count_tickets();
  for (auto line = lines_.begin(); line != lines_.end();) {
    while (line->pending < line->waiting_count && line->active < useful_tickets(*line))
      ask_for_one(*line);
    while (line->pending > line->waiting_count) drop_one(*line);
    ++line;
  }
  for (auto& [number, ticket] : tickets_) {
    bool spent = ticket.is_free() && (ticket.line->waiting_count == 0 || !may_pass_on(ticket));
    if (spent) begin_giving_back(number, ticket);
  }
  std::erase_if(lines_, [&](const Line& line) {
    return line.waiting_count == 0 && std::ranges::none_of(tickets_, [&](const auto& each) {
             return each.second.line == &line;
           });
  });
}

void MutexWorkflow::count_tickets() {
  for (Line& line : lines_) line.pending = line.active = 0;
  for (const auto& [number, ticket] : tickets_) {
    if (ticket.state == Ticket::State::leaving || ticket.unwanted) continue;
    // One that is about to be given back makes room.
    if (ticket.is_free() && !may_pass_on(ticket)) continue;
    ++ticket.line->active;
    if (ticket.state != Ticket::State::granted) ++ticket.line->pending;
  }
}

// --- Tasks ------------------------------------------------------------------------------------------

Line& MutexWorkflow::line_of(const LockOrder& order) {
  for (Line& line : lines_) {
    if (line.weight == order.weight && line.lease == order.options->lease) return line;
  }
  Line& line = lines_.emplace_back();
  line.weight = order.weight;
  line.lease = order.options->lease;
  return line;
}

void MutexWorkflow::enter(HeldLock& held) {
  idle_timeout_ = std::max(idle_timeout_, held.order.options->idle_timeout);
  held.since = now();
  held.enter_phase(Phase::waiting);
  Line& line = line_of(held.order);
  changed_.set();
  if (held.order.only_if_free && is_taken_here(line)) {
    return fail(held, LockError(LockError::busy, "'" + resource_ + "' is held by this process"));
  }
  line.waiting.push_back(held);
  ++line.waiting_count;
  ++engine_.statistics().waiting;
}

// Whether who will not wait need not ask the store.
bool MutexWorkflow::is_taken_here(Line& line) {
  if (line.waiting_count > 0) return true;
  count_tickets();
  while (line.pending > 0) drop_one(line);  // those for whom they were have left
  return line.active >= useful_tickets(line) &&
         std::ranges::none_of(tickets_, [&](const auto& each) {
           return each.second.line == &line && each.second.is_free() && may_pass_on(each.second);
         });
}

bool MutexWorkflow::leave(HeldLock& held) {
  std::shared_ptr<MutexWorkflow> self = std::move(held.workflow);  // it may be all that keeps us
  Phase phase = held.phase();
  Ticket* ticket = std::exchange(held.ticket, nullptr);
  held.enter_phase(Phase::over);
  LockStatistics& statistics = engine_.statistics();
  changed_.set();
  if (phase == Phase::waiting) {
    IntrusiveList<HeldLock>::erase(held);
    --line_of(held.order).waiting_count;
    --statistics.waiting;
    ++statistics.cancelled;
  } else if (phase == Phase::held || phase == Phase::lost) {
    --holders_;
    --statistics.held;
    engine_.guest_left();
    nanoseconds taken(now() - held.since);
    statistics.was_held.add(taken);
    was_held_.add(taken);
  }
  if (!ticket) return false;
  ticket->holder = nullptr;
  if (!requests_) return false;  // the engine has ended
  if (ticket->is_gone) return false;
  if (ticket->line->waiting_count > 0 && may_pass_on(*ticket)) {
    if (hand(*ticket)) ++statistics.handed_over;
    return false;  // if its lease is old, it is renewed first
  }
  ticket->giver = held.shared_from_this();
  begin_giving_back(ticket->request.number, *ticket);
  return true;
}

bool MutexWorkflow::may_pass_on(const Ticket& ticket) const {
  return ticket.handed < ticket.request.tokens && ticket.handed < ticket.tokens.count;
}

bool MutexWorkflow::hand(Ticket& ticket) {
  std::int64_t time = now();
  if (time >= ticket.renewed_from + lease_of(ticket) / kHandUntil) return false;  // D3
  HeldLock& held = *ticket.line->waiting.pop_front();
  --ticket.line->waiting_count;
  ticket.holder = &held;
  ticket.unwanted = false;
  held.ticket = &ticket;
  ++holders_;
  engine_.guest_came();
  held.token.store(ticket.tokens.first + ticket.handed++, ::weft::detail::relaxed);
  held.valid_until.store(valid_until(ticket), ::weft::detail::relaxed);
  LockStatistics& statistics = engine_.statistics();
  --statistics.waiting;
  ++statistics.held;
  ++statistics.acquired;
  statistics.waited.add(nanoseconds(time - held.since));
  waited_.add(nanoseconds(time - held.since));
  held.since = time;
  held.enter_phase(Phase::held);
  held.answered.set();
  return true;
}

LockError MutexWorkflow::reason_to_give_up(const HeldLock& held) const {
  std::string text =
      "'" + resource_ + "' was not acquired within " + in_seconds(held.order.timeout);
  if (trouble_) return LockError(trouble_->kind(), text + ": " + trouble_->what());
  if (is_unanswered(held))
    return LockError(LockError::unreachable, text + ": the store has not answered");
  return LockError(LockError::timeout, text);
}

// The store was asked, and has never said where we stand. (If it says that it cannot, that is trouble_.)
bool MutexWorkflow::is_unanswered(const HeldLock& held) const {
  bool asked = false;
  for (const auto& [number, ticket] : tickets_) {
    bool is_ours = ticket.request.weight == held.order.weight &&
                   ticket.request.lease == held.order.options->lease;
    if (!is_ours || ticket.state == Ticket::State::leaving) continue;
    if (ticket.state != Ticket::State::asking) return false;
    asked = true;
  }
  return asked;
}

void MutexWorkflow::fail(HeldLock& held, LockError error) {
  if (held.linked()) {
    IntrusiveList<HeldLock>::erase(held);
    --line_of(held.order).waiting_count;
    --engine_.statistics().waiting;
  }
  LockStatistics& statistics = engine_.statistics();
  ++(error == LockError::timeout ? statistics.timed_out : statistics.failed);
  held.error = std::move(error);
  held.enter_phase(Phase::over);
  held.workflow.reset();
  held.answered.set();
  changed_.set();
}

void MutexWorkflow::give_up(HeldLock& held) {
  std::shared_ptr<MutexWorkflow> self = held.workflow;
  fail(held, reason_to_give_up(held));
}

void MutexWorkflow::abandon(HeldLock& held) {
  std::shared_ptr<MutexWorkflow> self = held.workflow;
  if (held.phase() == Phase::waiting)
    return fail(held, LockError(LockError::withdrawn, "the engine has ended"));
  lose(held, LossReason::gone);
}

void MutexWorkflow::fail_all(Line& line, const LockError& error) {
  while (!line.waiting.empty()) fail(line.waiting.front(), error);
}

void MutexWorkflow::fail_all(const LockError& error) {
  for (Line& line : lines_) fail_all(line, error);
}

void MutexWorkflow::lose(HeldLock& held, LossReason reason) {
  if (held.phase() != Phase::held) return;
  ++lost_[static_cast<std::size_t>(reason)];
  ++engine_.statistics().lost[static_cast<std::size_t>(reason)];
  held.error = LockError(LockError::lost, "'" + resource_ + "': " + what_of(reason));
  held.valid_until.store(0, ::weft::detail::relaxed);
  held.enter_phase(Phase::lost);
  held.ends.set();
}

// --- Tickets ----------------------------------------------------------------------------------------

void MutexWorkflow::ask_for_one(Line& line) {
  const HeldLock& first = line.waiting.front();
  const MutexOptions& options = *first.order.options;
  TicketNumber number = engine_.number_ticket(*this);
  Ticket& ticket = tickets_[number];
  ticket.line = &line;
  ticket.request = {resource_,     number,
                    line.weight,   capacity_,
                    line.lease,    options.fair_bound,
                    options.owner, first.order.only_if_free};
  ++line.pending;
  ++line.active;
  requests_->start(ask(number));
}

void MutexWorkflow::drop_one(Line& line) {
  for (auto place = tickets_.rbegin(); place != tickets_.rend(); ++place) {
    auto& [number, ticket] = *place;
    if (ticket.line != &line || ticket.unwanted) continue;
    if (ticket.state == Ticket::State::asking) {
      ticket.unwanted = true;  // ask() sees to it
    } else if (ticket.state == Ticket::State::queued) {
      begin_giving_back(number, ticket);
    } else {
      continue;
    }
    --line.pending;
    --line.active;
    return;
  }
  WEFT_ASSERT(false, "who counts tickets that are asked for finds them");
}

void MutexWorkflow::forget_ticket(TicketNumber number) {
  tickets_.erase(number);
  engine_.forget_ticket(number);
  changed_.set();
}

Task<void> MutexWorkflow::ask(TicketNumber number) {
  Ticket& ticket = tickets_.at(number);
  ticket.in_flight = true;
  ticket.renewed_from = now();  // W2: of the first attempt, which may be the one that counts
  Backoff backoff;
  // Until there was news of it, or nobody wants it any more: then the store may have it, or not.
  while (!ticket.unwanted && ticket.state == Ticket::State::asking) {
    LockResult<Placed> answer = co_await engine_.store().enqueue(ticket.request);
    if (answer) {
      trouble_.reset();
      co_return placed(number, ticket, *answer);
    }
    if (!answer.error().is_passing()) {
      fail_all(*ticket.line, answer.error());
      if (ticket.state == Ticket::State::asking) co_return forget_ticket(number);
      break;
    }
    trouble_ = answer.error();
    co_await sleep_for(backoff.next());
  }
  end_asking(number, ticket);
}

void MutexWorkflow::placed(TicketNumber number, Ticket& ticket, const Placed& answer) {
  if (answer.standing == Standing::refused) {
    while (!ticket.line->waiting.empty() && ticket.line->waiting.front().order.only_if_free) {
      fail(ticket.line->waiting.front(),
           LockError(LockError::busy, "'" + resource_ + "' is held by somebody else"));
    }
    forget_ticket(number);
    return;
  }
  if (ticket.state == Ticket::State::asking)
    ticket.state = Ticket::State::queued;  // unless news came first
  if (answer.standing == Standing::granted) granted(number, answer.tokens);
  end_asking(number, ticket);
}

void MutexWorkflow::end_asking(TicketNumber number, Ticket& ticket) {
  ticket.in_flight = false;
  changed_.set();
  if (ticket.is_gone) {
    forget_gone(number, ticket);
  } else if (std::exchange(ticket.unwanted, false) || ticket.state == Ticket::State::leaving) {
    begin_giving_back(number, ticket);
  }
}

void MutexWorkflow::granted(TicketNumber number, TokenBlock tokens) {
  auto place = tickets_.find(number);
  if (place == tickets_.end()) return;
  Ticket& ticket = place->second;
  if (ticket.tokens.count > 0) return;  // known
  ticket.tokens = tokens;
  if (ticket.state != Ticket::State::leaving) ticket.state = Ticket::State::granted;
  changed_.set();
}

void MutexWorkflow::gone(TicketNumber number) {
  auto place = tickets_.find(number);
  if (place == tickets_.end()) return;
  Ticket& ticket = place->second;
  // The store ends a lease later than we do: before that, somebody else has ended it; or we ourselves, if it is leaving.
  bool revoked =
      ticket.state != Ticket::State::leaving && now() < ticket.renewed_from + lease_of(ticket);
  if (ticket.holder) lose(*ticket.holder, revoked ? LossReason::revoked : LossReason::gone);
  if (revoked) {
    fail_all(LockError(LockError::revoked,
                       "'" + resource_ + "' was taken away from all who held it or waited for it"));
  }
  if (ticket.in_flight) {
    ticket.is_gone = true;  // end_asking() comes back to it
    return;
  }
  forget_gone(number, ticket);
}

void MutexWorkflow::forget_gone(TicketNumber number, Ticket& ticket) {
  if (ticket.holder) ticket.holder->ticket = nullptr;
  forget_ticket(number);
}

void MutexWorkflow::begin_giving_back(TicketNumber number, Ticket& ticket) {
  ticket.state = Ticket::State::leaving;
  if (std::exchange(ticket.in_flight, true)) return;  // end_asking() comes back to it
  if (!requests_) return;  // we were cancelled, and this is a late answer: its lease ends it
  requests_->start(give_back(number));
}

Task<void> MutexWorkflow::give_back(TicketNumber number) {
  Ticket& ticket = tickets_.at(number);
  for (Backoff backoff;;) {
    LockResult<> done;
    if (ticket.tokens.count > 0) {
      done = co_await engine_.store().release(number, ticket.tokens);
    } else {
      done = co_await engine_.store().withdraw(number);
    }
    ticket.tell_giver();  // it does not wait for more
    bool again =
        !done && done.error().is_passing() && now() < ticket.renewed_from + lease_of(ticket);
    if (!done && !again && !(done.error() == LockError::not_owner)) {
      log(LogLevel::warning,
          "weft: durable: '" + resource_ +
              "' was not given back, and is free when its lease has ended: " + done.error().what());
    }
    if (!again) break;
    co_await sleep_for(backoff.next());
  }
  forget_ticket(number);
}

// --- Time -------------------------------------------------------------------------------------------

std::int64_t MutexWorkflow::valid_until(const Ticket& ticket) const noexcept {
  std::int64_t lease = lease_of(ticket);
  return ticket.renewed_from + lease - lease / kMargin;
}

// Whoever holds it too long is not helped any more.
bool MutexWorkflow::is_renewed(const Ticket& ticket) const noexcept {
  if (ticket.state != Ticket::State::queued && ticket.state != Ticket::State::granted) return false;
  return !ticket.holder ||
         now() < plus(ticket.holder->since, ticket.holder->order.options->max_hold);
}

void MutexWorkflow::set_renewed(Ticket& ticket, std::int64_t from) {
  ticket.renewed_from = std::max(ticket.renewed_from, from);
  if (ticket.holder && ticket.holder->phase() == Phase::held) {
    ticket.holder->valid_until.store(valid_until(ticket), ::weft::detail::relaxed);
  }
}

void MutexWorkflow::check_leases() {
  std::int64_t time = now();
  bool renewal_due = false;
  for (auto& [number, ticket] : tickets_) {
    if (HeldLock* holder = ticket.holder) {
      if (time >= valid_until(ticket)) lose(*holder, LossReason::expired);
      if (time >= plus(holder->since, holder->order.options->max_hold))
        lose(*holder, LossReason::max_hold);
    }
    if (is_renewed(ticket) && time >= ticket.renewed_from + lease_of(ticket) / kRenewAt)
      renewal_due = true;
  }
  if (renewal_due && !renewing_ && time >= renew_again_at_) {
    renewing_ = true;
    requests_->start(renew());
  }
}

Task<void> MutexWorkflow::renew() {
  std::vector<TicketNumber> numbers;
  std::int64_t sent = now();
  std::int64_t shortest = INT64_MAX;
  for (const auto& [number, ticket] : tickets_) {
    if (!is_renewed(ticket)) continue;
    numbers.push_back(number);
    shortest = std::min(shortest, lease_of(ticket));
  }
  LockResult<std::vector<TicketNumber>> missing;
  if (!numbers.empty()) missing = co_await engine_.store().renew(numbers);
  renewing_ = false;
  changed_.set();
  if (!missing) {
    trouble_ = missing.error();
    if (!trouble_->is_passing()) fail_all(*trouble_);  // who holds has the rest of the lease
    renew_again_at_ = now() + shortest / kRenewAgain;
    co_return;
  }
  trouble_.reset();
  for (TicketNumber number : numbers) {
    auto place = tickets_.find(number);
    if (place == tickets_.end()) continue;
    if (std::ranges::find(*missing, number) == missing->end()) {
      set_renewed(place->second, sent);
    } else {
      gone(number);
    }
  }
}

nanoseconds MutexWorkflow::until_next_alarm() const {
  std::int64_t next = INT64_MAX;
  std::int64_t time = now();
  for (const auto& [number, ticket] : tickets_) {
    if (const HeldLock* holder = ticket.holder; holder && holder->phase() == Phase::held) {
      next =
          std::min({next, valid_until(ticket), plus(holder->since, holder->order.options->max_hold),
                    plus(time, kLookAgain)});
    }
    if (is_renewed(ticket) && !renewing_) {
      next = std::min(next,
                      std::max(ticket.renewed_from + lease_of(ticket) / kRenewAt, renew_again_at_));
    }
  }
  if (next == INT64_MAX) return nanoseconds::max();
  return nanoseconds(std::max<std::int64_t>(next - time, 0));
}

}  // namespace weft::inline v0::durable::detail
