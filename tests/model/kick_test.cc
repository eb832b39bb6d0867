// SPDX-License-Identifier: MIT
// Kick versus end versus handle drop: CancellationState and WaiterSlot as the runtime uses them.
//
// The functions of World are those of src/core/cancellation_runtime.cc, without what happens inside
// the task: cancel(), send_kick(), drop_ref(), end(), kick(), cancel_child(). The words and orders
// under test are the headers' own.
#include "weft/core/cancellation_state.h"
#include "weft/core/waiter_slot.h"
#include "weft_model.h"

namespace {

using State = weft::CancellationState;
using weft::detail::Atomic;
using weft_model::Mailbox;
using weft_model::Plain;

constexpr unsigned kHome = 7;
constexpr int kOutcome = 42;

struct Waiter {
  Plain fields;  // written before attach(), read by the end
  Mailbox woken;
};

struct Strand {
  State state;
  Atomic<unsigned> home;
  Atomic<unsigned> reason;  // 0: none
  weft::detail::WaiterSlot<Waiter> waiter;
  Plain bytes;  // read by whoever touches the strand, written by whoever frees it
  Plain outcome;
  Plain kick;  // the node: whoever owes the kick writes it, then the home loop

  Strand(State::Word word, unsigned at_home) : state(word), home(at_home), reason(0) {}
};

struct World {
  weft_model::Block<Strand> strand;
  bool bare = false;        // without home and reason, which other models look at
  Mailbox inbox;            // of the home loop: kicks only
  bool local_kick = false;  // Executor::kicks_
  int sent = 0, arrived = 0;
  bool born_cancelled = false;    // CANCELLED before HOMED
  bool closed_cancelled = false;  // CANCELLED before CLOSED

  void start(State::Word word, unsigned home = kHome) { strand.make(word, home); }

  // --- Any thread with a reference ---------------------------------------------------------------

  void cancel(unsigned why, bool at_home = false) {
    strand->bytes.read();
    if (!bare) set_reason(why);
    if (strand->state.request_cancel()) send_kick(at_home);
  }

  void set_reason(unsigned why) {
    unsigned none = 0;
    strand->reason.compare_exchange_strong(none, why, weft::detail::relaxed, weft::detail::relaxed);
  }

  void send_kick(bool at_home) {
    strand->bytes.read();  // W4: it cannot go away
    RL_ASSERT(bare || strand->home.load(weft::detail::relaxed) == kHome);
    strand->kick.write();
    RL_ASSERT(sent == 0);  // W2
    ++sent;
    if (at_home) {
      local_kick = true;
    } else {
      inbox.post();
    }
  }

  void drop_ref() {
    strand->bytes.read();
    if (strand->state.drop_ref()) free();
  }
  void free() {
    strand->outcome.read();
    strand->kick.write();
    strand->bytes.write();  // W5
    strand.free();
  }

  void drop_handle() {  // StartedTask::drop()
    strand->state.clear_handle();
    drop_ref();
  }

  // --- The home loop ----------------------------------------------------------------------------

  void check_reason() {
    RL_ASSERT(bare || strand->reason.load(weft::detail::relaxed) != 0);  // W6
  }

  void poll() {
    if (strand->state.is_cancelled()) check_reason();
  }

  void run_kick_if_arrived() {
    if (local_kick || inbox.try_take()) kick();
  }

  void kick() {
    local_kick = false;
    ++arrived;
    strand->bytes.read();
    State::Word word = strand->state.set_kicked();
    RL_ASSERT(word & State::CANCELLED);
    check_reason();
    strand->kick.write();
    if (word & State::CLOSED) drop_ref();
  }

  // parent: set if the strand's parent lives on another loop, which hears of the end.
  void end(Mailbox* parent = nullptr) {
    strand->outcome.write(kOutcome);
    if (strand->state.is_private() && !strand->waiter.attached() &&
        !State::leaves_husk(strand->state.peek())) {
      closed_cancelled = strand->state.peek() & State::CANCELLED;
      return free();
    }
    State::Word before = strand->state.close();
    Waiter* waiter = strand->waiter.publish();
    closed_cancelled = before & State::CANCELLED;
    bool husk = State::leaves_husk(before);
    int owners = husk + (parent != nullptr);
    for (int extra = 1; extra < owners; ++extra) strand->state.add_ref();
    if (waiter) {
      waiter->fields.read();
      waiter->woken.post();
    }
    if (parent) parent->post();
    if (owners == 0) drop_ref();
    if (husk) {
      if (!local_kick) inbox.take();
      kick();
    }
  }

  void check() const {
    RL_ASSERT(strand.freed());
    RL_ASSERT(sent == arrived && inbox.empty());
    RL_ASSERT(sent == (closed_cancelled && !born_cancelled));  // exactly when owed
  }
};

// --- Kick, end and handle drop, two by two and all three, with nothing else ----------------------

// The task ends while its handle is dropped without a cancel.
struct EndRacesDrop : rl::test_suite<EndRacesDrop, 2> {
  World world;

  void before() { world.start(State::HOMED | State::HANDLE | 2); }
  void thread(unsigned index) {
    if (index == 0) return world.end();
    world.drop_handle();
  }
  void after() { world.check(); }
};

// A CancelHandle cancels and goes while the StartedTask goes; the task hears of it and ends later.
struct KickRacesDrop : rl::test_suite<KickRacesDrop, 2> {
  World world;

  void before() { world.start(State::HOMED | State::HANDLE | 3); }
  void thread(unsigned index) {
    if (index == 0) return world.drop_handle();
    world.cancel(1);
    world.drop_ref();
  }
  void after() {
    world.run_kick_if_arrived();
    world.end();
    world.check();
  }
};

// The task ends while a CancelHandle cancels and goes.
struct KickRacesEnd : rl::test_suite<KickRacesEnd, 2> {
  World world;

  void before() { world.start(State::HOMED | 2); }
  void thread(unsigned index) {
    if (index == 0) return world.end();
    world.cancel(1);
    world.drop_ref();
  }
  void after() { world.check(); }
};

// All three at once: the task ends, a CancelHandle cancels and goes, another goes.
struct KickRacesEndAndDrop : rl::test_suite<KickRacesEndAndDrop, 3> {
  World world;

  void before() {
    world.start(State::HOMED | 3);
    world.bare = true;
  }
  void thread(unsigned index) {
    if (index == 0) return world.end();
    if (index == 1) world.cancel(1);
    world.drop_ref();
  }
  void after() { world.check(); }
};

// --- The same among what else there is -----------------------------------------------------------

constexpr State::Word kWithHandle = State::HOMED | State::HANDLE | 2;

// One handle, used and dropped on another thread; the task polls, hears the kick, ends.
struct CancelRacesEnd : rl::test_suite<CancelRacesEnd, 2> {
  World world;

  void before() { world.start(kWithHandle); }
  void thread(unsigned index) {
    if (index == 0) {
      world.poll();
      world.run_kick_if_arrived();
      return world.end();
    }
    if (rl::rand(2)) world.cancel(1);
    world.drop_handle();
  }
  void after() { world.check(); }
};

// A CancelHandle cancels on one thread, the StartedTask is detached on another, the task ends.
struct CancelRacesEndAndDetach : rl::test_suite<CancelRacesEndAndDetach, 3> {
  World world;

  void before() { world.start(State::HOMED | State::HANDLE | 3); }
  void thread(unsigned index) {
    switch (index) {
      case 0:
        return world.end();
      case 1:
        return world.drop_handle();
      default:
        world.cancel(2);
        world.drop_ref();
    }
  }
  void after() { world.check(); }
};

// Two CancelHandles on two threads: one kick.
struct TwoCancelsRaceEnd : rl::test_suite<TwoCancelsRaceEnd, 3> {
  World world;

  void before() { world.start(State::HOMED | 3); }
  void thread(unsigned index) {
    if (index == 0) return world.end();
    world.cancel(index);
    world.drop_ref();
  }
  void after() { world.check(); }
};

// All of it: a StartedTask is dropped, which cancels, a CancelHandle cancels, the task hears and
// ends.
struct HandleDropRacesCancelAndEnd : rl::test_suite<HandleDropRacesCancelAndEnd, 3> {
  World world;

  void before() { world.start(State::HOMED | State::HANDLE | 3); }
  void thread(unsigned index) {
    switch (index) {
      case 0:
        world.poll();
        world.run_kick_if_arrived();
        return world.end();
      case 1:
        world.cancel(1);
        return world.drop_handle();
      default:
        world.cancel(2);
        world.drop_ref();
    }
  }
  void after() { world.check(); }
};

// A waiter on another loop attaches, perhaps withdraws, and reads the outcome; a third thread
// cancels what it waits for.
struct WaiterElsewhereReadsTheOutcome : rl::test_suite<WaiterElsewhereReadsTheOutcome, 3> {
  World world;
  Waiter waiter;

  void before() { world.start(State::HOMED | State::HANDLE | 3); }
  void thread(unsigned index) {
    switch (index) {
      case 0:
        return world.end();
      case 1:
        wait(rl::rand(2));
        return world.drop_handle();
      default:
        world.cancel(2);
        world.drop_ref();
    }
  }
  void wait(bool withdraw) {
    using Attached = weft::detail::WaiterSlot<Waiter>::Attached;
    waiter.fields.write();
    if (world.strand->waiter.attach(waiter) == Attached::waiting) {
      if (withdraw && world.strand->waiter.withdraw(waiter)) return waiter.fields.write(2);
      waiter.woken.take();
      waiter.fields.write(2);
    }
    RL_ASSERT(world.strand->outcome.read() == kOutcome);
  }
  void after() {
    world.check();
    RL_ASSERT(waiter.woken.empty());
  }
};

// A fresh task has no home: whoever dequeues it gives it one, while its handle is cancelled.
struct CancelRacesTheFirstHome : rl::test_suite<CancelRacesTheFirstHome, 2> {
  World world;

  void before() { world.start(State::HANDLE | 2, 0); }
  void thread(unsigned index) {
    if (index == 0) {
      world.strand->home.store(kHome, weft::detail::relaxed);
      world.born_cancelled = world.strand->state.set_homed();
      if (world.born_cancelled) world.check_reason();
      world.run_kick_if_arrived();
      return world.end();
    }
    world.cancel(1);
    world.drop_handle();
  }
  void after() { world.check(); }
};

// ignore_cancellation() is refused or, when left, makes up for what was missed.
struct IgnoreRacesCancel : rl::test_suite<IgnoreRacesCancel, 2> {
  World world;

  void before() { world.start(kWithHandle); }
  void thread(unsigned index) {
    if (index == 0) {
      if (!world.strand->state.try_set_ignored()) {
        world.check_reason();
      } else {
        RL_ASSERT(!world.strand->state.is_effectively_cancelled());
        if (world.strand->state.clear_ignored()) world.check_reason();
      }
      return world.end();
    }
    world.cancel(1);
    world.drop_handle();
  }
  void after() { world.check(); }
};

// The parent's loop is not the child's. It cancels a child that it lists, without a reference, and
// lets go of it when it hears of the end.
struct ParentElsewhereCancelsWhileTheChildEnds
    : rl::test_suite<ParentElsewhereCancelsWhileTheChildEnds, 2> {
  World world;
  Mailbox ended;

  void before() { world.start(State::HOMED | State::SHARED | 1); }
  void thread(unsigned index) {
    if (index == 0) {
      world.run_kick_if_arrived();
      return world.end(&ended);
    }
    world.cancel(1);
    ended.take();
    RL_ASSERT(world.strand->outcome.read() == kOutcome);
    world.drop_ref();
  }
  void after() { world.check(); }
};

// The holder of a lease cancels the task, which it has no reference to, while the task's own loop
// cancels it as a child: the word is not private, although one reference is all there is.
struct LeaseHolderAndHomeBothCancel : rl::test_suite<LeaseHolderAndHomeBothCancel, 2> {
  World world;
  Mailbox lease_dropped;

  void before() {
    world.start(State::HOMED | 1);
    world.strand->state.set_shared();
  }
  void thread(unsigned index) {
    if (index == 1) {
      world.cancel(1);
      return lease_dropped.post();
    }
    cancel_child();
    world.run_kick_if_arrived();
    lease_dropped.take();  // L7: the scope ends after its leases
    world.end();
  }
  void cancel_child() {
    State& state = world.strand->state;
    if (!state.is_private()) return world.cancel(2, true);
    if (!state.request_cancel_private()) return;
    world.strand->reason.store(2, weft::detail::relaxed);
    world.send_kick(true);
  }
  void after() { world.check(); }
};

}  // namespace

int main() {
  weft_model::Report report("KickModel");
  report.check<EndRacesDrop>("EndRacesDrop", weft_model::every());
  report.check<KickRacesDrop>("KickRacesDrop", weft_model::every());
  report.check<KickRacesEnd>("KickRacesEnd", weft_model::every());
  report.check<KickRacesEndAndDrop>("KickRacesEndAndDrop", weft_model::every());
  report.check<CancelRacesEnd>("CancelRacesEnd", weft_model::every());
  report.check<CancelRacesEndAndDetach>("CancelRacesEndAndDetach", weft_model::every_reduced());
  report.check<TwoCancelsRaceEnd>("TwoCancelsRaceEnd", weft_model::every_reduced());
  report.check<HandleDropRacesCancelAndEnd>("HandleDropRacesCancelAndEnd",
                                            weft_model::every_reduced());
  report.check<WaiterElsewhereReadsTheOutcome>("WaiterElsewhereReadsTheOutcome",
                                               weft_model::every_reduced());
  report.check<CancelRacesTheFirstHome>("CancelRacesTheFirstHome", weft_model::every());
  report.check<IgnoreRacesCancel>("IgnoreRacesCancel", weft_model::every());
  report.check<ParentElsewhereCancelsWhileTheChildEnds>("ParentElsewhereCancelsWhileTheChildEnds",
                                                        weft_model::every());
  report.check<LeaseHolderAndHomeBothCancel>("LeaseHolderAndHomeBothCancel", weft_model::every());
  return report.result();
}
