// SPDX-License-Identifier: MIT
// Kick versus move versus end: a strand that changes its home while it is cancelled; and a strand
// that is sent to a loop which is about to end.
//
// The functions of World are those of src/core/moving.cc and cancellation_runtime.cc, without what
// happens inside the task: cancel(), send_kick(), kick(), depart(), arrive(), end(). The orders of
// `home` are theirs, too: it is stored with release, and loaded with acquire where a kick arrives.
#include "weft/core/arrival_count.h"
#include "weft/core/cancellation_state.h"
#include "weft/core/inbox.h"
#include "weft_model.h"

namespace {

using State = weft::CancellationState;
using weft::detail::acquire;
using weft::detail::Atomic;
using weft::detail::relaxed;
using weft::detail::release;
using weft_model::Plain;

constexpr unsigned kLoops = 2;
constexpr int kOutcome = 42;
enum Entry { kKick = 1, kMoved = 2, kStop = 3 };

// A loop's inbox that can be closed: as weft_model::Mailbox, but a post may come too late.
class Box {
 public:
  // Returns: false if it is closed. That acquires, so that who tries again sees why at once; weft's
  // does not, and tries until it sees.
  bool post(int what) {
    weft_model::Turn turn(weft_model::Step::writes, this);
    if (closed_) {
      posts_.fetch_add(0, rl::mo_acquire, $);
      return false;
    }
    RL_ASSERT(last_ - first_ < kPostsMax);
    what_[last_++ % kPostsMax] = what;
    posts_.fetch_add(1, rl::mo_release, $);
    posts_.wake(rl::ctx(), 1, $);
    return true;
  }
  // Returns: 0 if there is none.
  int try_take() {
    {
      weft_model::Turn turn(weft_model::Step::writes, this);
    }
    return take_now();
  }
  int take() {
    {
      weft_model::Turn turn(weft_model::Step::writes, this);
    }
    int what;
    while ((what = take_now()) == 0) posts_.wait(rl::ctx(), false, false, $);
    return what;
  }
  // Only what is empty is closed: what was sent before is taken first. Returns: whether it was.
  bool try_close() {
    weft_model::Turn turn(weft_model::Step::writes, this);
    if (first_ != last_) return false;
    closed_ = true;
    posts_.fetch_add(0, rl::mo_release, $);
    return true;
  }
  [[nodiscard]] bool empty() const { return first_ == last_; }

 private:
  static constexpr unsigned kPostsMax = 4;

  int take_now() {
    rl::preemption_disabler hold(rl::ctx());
    if (empty()) return 0;
    posts_.fetch_sub(1, rl::mo_acquire, $);
    return what_[first_++ % kPostsMax];
  }

  rl::atomic<unsigned> posts_{0};
  int what_[kPostsMax];
  unsigned first_ = 0, last_ = 0;
  bool closed_ = false;
};

struct Strand {
  State state;
  Atomic<unsigned> home;
  Atomic<unsigned> reason;  // 0: none
  Plain bytes;              // read by whoever touches the strand, written by whoever frees it
  Plain phase;              // plain: the home loop's
  Plain kick;               // the node: whoever owes the kick writes it, then the home loop
  Plain outcome;

  Strand(State::Word word, unsigned at_home) : state(word), home(at_home), reason(0) {}
};

struct World {
  enum Phase { kReady = 0, kMoving = 1 };

  weft_model::Block<Strand> strand;
  Box inbox[kLoops];
  int sent = 0, arrived = 0;
  bool husk = false;
  bool closed_cancelled = false;

  void start(State::Word word) { strand.make(word, 0u); }

  // --- Any thread with a reference --------------------------------------------------------------

  void cancel(unsigned why) {
    strand->bytes.read();
    unsigned none = 0;
    strand->reason.compare_exchange_strong(none, why, relaxed, relaxed);
    if (!strand->state.request_cancel()) return;
    RL_ASSERT(sent++ == 0);  // W2
    send_kick();
  }
  void send_kick() {
    for (;;) {
      strand->bytes.read();  // W4: it cannot go away
      unsigned home = strand->home.load(relaxed);
      strand->kick.write();
      if (inbox[home].post(kKick)) return;
    }
  }
  void drop_ref() {
    strand->bytes.read();
    if (strand->state.drop_ref()) free();
  }
  void free() {
    strand->outcome.read();
    strand->kick.write();
    strand->phase.write();
    strand->bytes.write();  // W5
    strand.free();
  }

  // --- A loop -----------------------------------------------------------------------------------

  void kick(unsigned here) {
    strand->bytes.read();
    if (strand->home.load(acquire) != here) return send_kick();
    ++arrived;
    State::Word word = strand->state.set_kicked();
    RL_ASSERT(word & State::CANCELLED);
    RL_ASSERT(strand->reason.load(relaxed) != 0);  // W6
    strand->kick.write();
    if (word & State::CLOSED) {
      husk = false;
      return drop_ref();
    }
    strand->phase.read();  // kMoving: it is not here yet
  }

  void depart(unsigned to) {
    strand->state.set_shared();
    strand->phase.write(kMoving);
    strand->home.store(to, release);
    RL_ASSERT(inbox[to].post(kMoved));  // A3
  }

  void arrive() {
    RL_ASSERT(strand->phase.read() == kMoving);
    strand->phase.write(kReady);
    if (strand->state.load() & State::CANCELLED) {
      RL_ASSERT(strand->reason.load(relaxed) != 0);  // W6
    }
  }

  void end() {
    strand->outcome.write(kOutcome);
    State::Word before = strand->state.close();
    closed_cancelled = before & State::CANCELLED;
    husk = State::leaves_husk(before);
    if (!husk) drop_ref();
  }

  // Serves the inbox until the strand has come.
  void wait_for_arrival(unsigned here) {
    for (;;) {
      if (inbox[here].take() == kMoved) return arrive();
      kick(here);
    }
  }
  void serve_one(unsigned here) {
    if (int what = inbox[here].try_take()) {
      RL_ASSERT(what == kKick);
      kick(here);
    }
  }
  // The strand has left: the loop ends, and sends on what is for the strand.
  void close(unsigned here) {
    while (!inbox[here].try_close()) serve_one(here);
  }
  // The strand has ended here: the loop ends after its husk.
  void end_loop(unsigned here) {
    end();
    while (husk) {
      RL_ASSERT(inbox[here].take() == kKick);
      kick(here);
    }
    RL_ASSERT(inbox[here].try_close());
  }

  void check() const {
    RL_ASSERT(strand.freed());
    RL_ASSERT(inbox[0].empty() && inbox[1].empty());
    RL_ASSERT(sent == arrived);
    RL_ASSERT(sent == closed_cancelled);  // exactly when owed
  }
};

// The strand leaves loop 0, which ends, and ends on loop 1; a handle is cancelled meanwhile.
struct KickRacesMoveAndEnd : rl::test_suite<KickRacesMoveAndEnd, 3> {
  World world;

  void before() { world.start(State::HOMED | 2); }
  void thread(unsigned index) {
    switch (index) {
      case 0:
        world.serve_one(0);
        world.depart(1);
        return world.close(0);
      case 1:
        world.wait_for_arrival(1);
        world.serve_one(1);
        return world.end_loop(1);
      default:
        world.cancel(3);
        world.drop_ref();
    }
  }
  void after() { world.check(); }
};

// It comes back, while its kick looks for it.
struct KickChasesAStrandThatComesBack : rl::test_suite<KickChasesAStrandThatComesBack, 3> {
  World world;

  void before() { world.start(State::HOMED | 2); }
  void thread(unsigned index) {
    switch (index) {
      case 0:
        world.depart(1);
        world.wait_for_arrival(0);
        return world.end_loop(0);
      case 1:
        world.wait_for_arrival(1);
        world.depart(0);
        return world.close(1);
      default:
        world.cancel(3);
        world.drop_ref();
    }
  }
  void after() { world.check(); }
};

// The parent stays on loop 0 and cancels a child that it lists, without a reference: the word was
// private until the child left, and is not any more (W7).
struct ParentCancelsAChildThatHasLeft : rl::test_suite<ParentCancelsAChildThatHasLeft, 2> {
  World world;
  weft_model::Mailbox ended;

  void before() { world.start(State::HOMED | 1); }
  void thread(unsigned index) {
    if (index == 1) {
      world.wait_for_arrival(1);
      world.serve_one(1);
      world.strand->state.add_ref();  // the parent's
      world.end_loop(1);
      return ended.post();
    }
    world.depart(1);
    cancel_child();
    ended.take();
    RL_ASSERT(world.strand->outcome.read() == kOutcome);
    world.drop_ref();
  }
  void cancel_child() {
    State& state = world.strand->state;
    if (!state.is_private()) return world.cancel(2);
    if (!state.request_cancel_private()) return;
    world.strand->reason.store(2, relaxed);
    ++world.sent;
    world.send_kick();
  }
  void after() { world.check(); }
};

// --- A strand that is sent to a loop which ends -------------------------------------------------

struct Ending {
  weft::detail::ArrivalCount arrivals;
  Box inbox;
  int announced = 0, refused = 0, came = 0;

  void send() {
    if (!arrivals.announce()) {
      ++refused;
      return;
    }
    ++announced;
    RL_ASSERT(inbox.post(kMoved));  // A3
  }
  void run_until_over() {
    while (!arrivals.close_if_none()) {
      RL_ASSERT(inbox.take() == kMoved);
      arrivals.arrived();
      ++came;
    }
    RL_ASSERT(inbox.try_close());
  }
  void check(int senders) const {
    RL_ASSERT(announced + refused == senders);
    RL_ASSERT(announced == came && inbox.empty());
  }
};

struct SendersRaceTheLoopsEnd : rl::test_suite<SendersRaceTheLoopsEnd, 3> {
  Ending ending;

  void thread(unsigned index) {
    if (index == 0) return ending.run_until_over();
    ending.send();
  }
  void after() { ending.check(2); }
};

// The strand stays until it is cancelled: by stop(), which cancels those that are there, or on its
// arrival, if it comes after that.
struct StopRacesASender : rl::test_suite<StopRacesASender, 3> {
  Ending ending;
  int guests = 0;

  void thread(unsigned index) {
    switch (index) {
      case 0:
        return run();
      case 1:
        return ending.send();
      default:
        ending.arrivals.refuse();
        RL_ASSERT(ending.inbox.post(kStop));
    }
  }
  void run() {
    bool stopped = false;
    while (!stopped || guests > 0 || !ending.arrivals.close_if_none()) {
      if (ending.inbox.take() == kStop) {
        guests = 0;  // cancelled, and gone
        stopped = true;
        continue;
      }
      ending.arrivals.arrived();
      ++ending.came;
      if (!ending.arrivals.refuses()) ++guests;
    }
    RL_ASSERT(ending.inbox.try_close());
  }
  void after() {
    ending.check(1);
    RL_ASSERT(ending.arrivals.refuses());
  }
};

// A loop that was closed opens again: whoever sees that it takes strands finds its inbox open (A3).
// One that was stopped before opens to its own group alone.
template <class Self, bool kStopped>
struct Opening : rl::test_suite<Self, 2> {
  weft::detail::Inbox inbox;
  weft::detail::ArrivalCount arrivals;
  weft::detail::PostNode node;

  void before() {
    RL_ASSERT(inbox.try_close());
    RL_ASSERT(arrivals.close_if_none());
  }
  void thread(unsigned index) {
    if (index == 0) {
      inbox.reopen();
      if (kStopped) {
        arrivals.reopen();
      } else {
        arrivals.accept();
      }
      return;
    }
    if (kStopped) RL_ASSERT(!arrivals.announce());
    if (kStopped ? arrivals.announce_within_group() : arrivals.announce()) {
      weft::detail::PostEntry entry(node, weft::detail::PostKind::moved);
      RL_ASSERT(inbox.push(entry) != weft::detail::Inbox::Pushed::closed);
    }
  }
};
struct OpeningRacesASender : Opening<OpeningRacesASender, false> {};
struct StoppedOpeningRacesASender : Opening<StoppedOpeningRacesASender, true> {};

}  // namespace

int main() {
  weft_model::Report report("MoveModel");
  report.check<KickRacesMoveAndEnd>("KickRacesMoveAndEnd", weft_model::every_reduced());
  report.check<KickChasesAStrandThatComesBack>("KickChasesAStrandThatComesBack",
                                               weft_model::every_reduced());
  report.check<ParentCancelsAChildThatHasLeft>("ParentCancelsAChildThatHasLeft",
                                               weft_model::every());
  report.check<SendersRaceTheLoopsEnd>("SendersRaceTheLoopsEnd", weft_model::every());
  report.check<StopRacesASender>("StopRacesASender", weft_model::every());
  report.check<OpeningRacesASender>("OpeningRacesASender", weft_model::every());
  report.check<StoppedOpeningRacesASender>("StoppedOpeningRacesASender", weft_model::every());
  return report.result();
}
