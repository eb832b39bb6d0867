// SPDX-License-Identifier: MIT
// LeaseCount: leases dropped on two threads against a scope that waits for the last of them.
#include "weft/core/lease_count.h"

#include "weft_model.h"

namespace {

using weft_model::Mailbox;
using weft_model::Plain;

enum Post { kDropped, kLink };

// A scope as the runtime uses it. It lives on the heap, so that touching it after its end is seen.
struct Scope {
  weft::detail::LeaseCount leases;
  Plain bytes;    // read by whoever touches the scope, written by its end
  Plain node;     // Strand::link: the home loop's while it runs, then the post's
  Plain work[2];  // what each lease holder did for the scope
};

struct World {
  weft_model::Block<Scope> scope;
  Mailbox inbox;
  int sent = 0, arrived = 0, waits = 0;

  void open(int leases) {
    scope.make();
    for (int i = 0; i < leases; ++i) scope->leases.add();
  }

  // --- Any thread: CancellationRuntime::drop_lease() and start_leased() ---------------------------

  void drop_lease() {
    scope->bytes.read();
    if (!scope->leases.drop()) return;  // C3: from here on the scope may be gone
    scope->bytes.read();
    scope->node.write();
    RL_ASSERT(sent == arrived);  // C6: the node is in one chain at a time
    ++sent;
    inbox.post(kDropped);
  }
  void send_link() {
    scope->bytes.read();
    inbox.post(kLink);
  }

  // --- The home loop ----------------------------------------------------------------------------

  // Returns: true if the scope must wait. [wait_at_end(), scope_progress()]
  bool must_wait() {
    if (scope->leases.wait()) {
      ++waits;
      return true;
    }
    scope->node.write();  // push_ready()
    return false;
  }
  void run_inbox_until_joined(bool waiting) {
    while (waiting) {
      if (inbox.take() == kLink) {
        scope->leases.drop_at_home();  // the lease has become a listed child, which ends at once
        waiting = must_wait();
      } else {
        ++arrived;
        scope->node.write();
        scope->leases.post_arrived();
        waiting = must_wait();
      }
    }
  }
  void end() {
    RL_ASSERT(sent == arrived && inbox.empty());  // C4
    scope->work[0].read();
    scope->work[1].read();
    scope->bytes.write();
    RL_ASSERT(scope->leases.settled());  // last: it acquires
    scope.free();
  }
  void join_and_end() {
    scope->node.write();  // it was Strand::wait until now
    run_inbox_until_joined(must_wait());
    end();
  }
};

// Two leases, dropped on two threads; one of them is copied first.
struct ScopeEndsAfterTheLastLease : rl::test_suite<ScopeEndsAfterTheLastLease, 3> {
  World world;

  void before() { world.open(2); }
  void thread(unsigned index) {
    if (index == 0) return world.join_and_end();
    world.scope->work[index - 1].write();
    if (index == 1) {
      world.scope->leases.add();
      world.drop_lease();
    }
    world.drop_lease();
  }
  void after() {
    RL_ASSERT(world.scope.freed());
    RL_ASSERT(world.sent <= 1);
    RL_ASSERT((world.sent == 1) == (world.waits > 0));
  }
};

// The fast way: no waiting at all where settled() says so.
struct SettledMeansTheWorkIsVisible : rl::test_suite<SettledMeansTheWorkIsVisible, 3> {
  World world;

  void before() { world.open(2); }
  void thread(unsigned index) {
    if (index > 0) {
      world.scope->work[index - 1].write();
      return world.drop_lease();
    }
    if (!world.scope->leases.settled()) return world.join_and_end();
    world.end();
  }
  void after() { RL_ASSERT(world.scope.freed()); }
};

// One lease becomes a child of the home loop, the other is dropped elsewhere, in any order.
struct LinkRacesTheLastDrop : rl::test_suite<LinkRacesTheLastDrop, 3> {
  World world;

  void before() { world.open(2); }
  void thread(unsigned index) {
    if (index == 0) return world.join_and_end();
    world.scope->work[index - 1].write();
    if (index == 1) return world.send_link();
    world.drop_lease();
  }
  void after() {
    RL_ASSERT(world.scope.freed());
    RL_ASSERT(world.sent <= 1);
  }
};

// The bug that C6 closes: while the post of the last lease is under way, the home loop makes another
// (a callback started a child meanwhile), and that one is dropped too. It posted the same node twice.
struct LeaseMadeWhileThePostIsUnderWay : rl::test_suite<LeaseMadeWhileThePostIsUnderWay, 3> {
  World world;
  Mailbox lease;

  void before() { world.open(1); }
  void thread(unsigned index) {
    switch (index) {
      case 0: {
        world.scope->node.write();
        bool waiting = world.must_wait();
        if (waiting) world.scope->leases.add();
        lease.post(waiting);
        if (waiting) waiting = world.must_wait();
        world.run_inbox_until_joined(waiting);
        return world.end();
      }
      case 1:
        world.scope->work[0].write();
        return world.drop_lease();
      default:
        if (!lease.take()) return;
        world.scope->work[1].write();
        world.drop_lease();
    }
  }
  void after() { RL_ASSERT(world.scope.freed()); }
};

}  // namespace

int main() {
  weft_model::Report report("LeaseModel");
  report.check<ScopeEndsAfterTheLastLease>("ScopeEndsAfterTheLastLease", weft_model::every());
  report.check<SettledMeansTheWorkIsVisible>("SettledMeansTheWorkIsVisible", weft_model::every());
  report.check<LinkRacesTheLastDrop>("LinkRacesTheLastDrop", weft_model::every());
  report.check<LeaseMadeWhileThePostIsUnderWay>("LeaseMadeWhileThePostIsUnderWay",
                                                weft_model::every());
  return report.result();
}
