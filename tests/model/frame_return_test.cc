// SPDX-License-Identifier: MIT
// FrameReturns and FrameDebt: blocks released on other threads against an owner that takes them
// back, and that exits.
//
// The functions of World are those of src/core/frame_pool.cc, without sizes, lists and batches:
// hand_over(), free_orphan(), take_back(), retire().
#include "weft/core/frame_return.h"

#include "weft_model.h"

namespace {

using weft::detail::FrameBlock;
using weft::detail::FrameDebt;
using weft::detail::FrameReturns;
using weft_model::Plain;

constexpr int kBlocksMax = 4;
constexpr int kSlabsMax = 2;

struct Pool {
  FrameReturns returns;
  FrameDebt slabs_owed;
  Plain bytes;  // read by whoever touches the pool, written by whoever frees it
};

struct Slab {
  FrameDebt owed;
  Plain bytes;     // Slab::pool: as in Pool
  Plain counters;  // the owner's, and at last the unmapper's
  int out = 0;     // blocks_out()
};

struct Frame : FrameBlock {
  Plain bytes;  // what its user does with it
  int slab = 0;
  bool home = false;  // taken back; looked at in after()
};

struct World {
  weft_model::Block<Pool> pool;
  weft_model::Block<Slab> slabs[kSlabsMax];
  Frame frames[kBlocksMax];
  int slab_count = 0;

  // As many slabs as named here, with that many blocks out of each.
  void start(std::initializer_list<int> blocks_of_slabs) {
    pool.make();
    int frame = 0;
    for (int blocks : blocks_of_slabs) {
      slabs[slab_count].make();
      slabs[slab_count]->out = blocks;
      for (int i = 0; i < blocks; ++i) frames[frame++].slab = slab_count;
      ++slab_count;
    }
  }

  // --- Any thread but the owner's ----------------------------------------------------------------

  // Releases frames[first] … frames[last], as one batch.
  void release(int first, int last) {
    for (int i = first; i <= last; ++i) {
      frames[i].bytes.write();
      slabs[frames[i].slab]->bytes.read();  // I4: slab_of(block)->pool
      frames[i].next = i < last ? &frames[i + 1] : nullptr;
    }
    hand_over(&frames[first], &frames[last]);
  }
  void hand_over(FrameBlock* first, FrameBlock* last) {
    pool->bytes.read();
    if (pool->returns.push(first, last)) return;
    last->next = nullptr;
    while (first != nullptr) {
      FrameBlock* next = first->next;
      int slab = static_cast<Frame*>(first)->slab;
      slabs[slab]->bytes.read();
      if (slabs[slab]->owed.repay()) free_orphan(slab);
      first = next;
    }
  }
  void free_orphan(int slab) {
    pool->bytes.read();
    unmap(slab);
    if (pool->slabs_owed.repay()) free_pool();
  }

  // --- The owner ---------------------------------------------------------------------------------

  // Returns: how many.
  int take_back(FrameBlock* chain) {
    int count = 0;
    for (; chain != nullptr; ++count) {
      auto* frame = static_cast<Frame*>(chain);
      chain = chain->next;
      RL_ASSERT(!frame->home);
      frame->home = true;
      frame->bytes.write();  // it is handed out again
      slabs[frame->slab]->counters.write();
      --slabs[frame->slab]->out;
    }
    return count;
  }
  void retire() {
    take_back(pool->returns.close());
    for (int slab = 0; slab < slab_count; ++slab) {
      slabs[slab]->counters.read();
      if (slabs[slab]->owed.settle(slabs[slab]->out)) free_orphan(slab);
    }
    pool->bytes.read();
    if (pool->slabs_owed.settle(slab_count)) free_pool();
  }

  // --- Whoever comes last ------------------------------------------------------------------------

  void unmap(int slab) {
    slabs[slab]->bytes.write();
    slabs[slab]->counters.write();
    for (Frame& frame : frames) {
      if (frame.slab == slab) frame.bytes.write();  // I4: nobody is in the middle of one
    }
    slabs[slab].free();
  }
  void free_pool() {
    pool->bytes.write();
    pool.free();
  }
  void check_all_freed() {
    for (int slab = 0; slab < slab_count; ++slab) RL_ASSERT(slabs[slab].freed());
    RL_ASSERT(pool.freed());
  }
};

// FrameReturns I2: each chain is taken once, whole, with all that was done with its blocks.
struct OwnerTakesWhatOthersPush : rl::test_suite<OwnerTakesWhatOthersPush, 3> {
  World world;
  int taken = 0;

  void before() { world.start({4}); }
  void thread(unsigned index) {
    if (index == 1) return world.release(0, 1);
    if (index == 2) {
      world.release(2, 2);
      return world.release(3, 3);
    }
    taken += world.take_back(world.pool->returns.take());
    taken += world.take_back(world.pool->returns.take());
  }
  void after() {
    taken += world.take_back(world.pool->returns.take());
    RL_ASSERT(taken == 4);
    world.retire();
    world.check_all_freed();
  }
};

// The owner takes, then exits, while two others release the last two blocks of one slab.
struct ExitRacesReleasesOfOneSlab : rl::test_suite<ExitRacesReleasesOfOneSlab, 3> {
  World world;

  void before() { world.start({2}); }
  void thread(unsigned index) {
    if (index > 0) return world.release(static_cast<int>(index) - 1, static_cast<int>(index) - 1);
    world.take_back(world.pool->returns.take());
    world.retire();
  }
  void after() { world.check_all_freed(); }
};

// Two slabs: one other thread's batch has blocks of both, another's of the second.
struct ExitRacesBatchesOfTwoSlabs : rl::test_suite<ExitRacesBatchesOfTwoSlabs, 3> {
  World world;

  void before() { world.start({1, 2}); }
  void thread(unsigned index) {
    if (index == 0) return world.retire();
    if (index == 1) return world.release(0, 1);
    world.release(2, 2);
  }
  void after() { world.check_all_freed(); }
};

// One other thread, several times: before, during and after the exit.
struct ExitRacesOneReleaser : rl::test_suite<ExitRacesOneReleaser, 2> {
  World world;

  void before() { world.start({2, 1}); }
  void thread(unsigned index) {
    if (index == 0) {
      world.take_back(world.pool->returns.take());
      return world.retire();
    }
    for (int i = 0; i < 3; ++i) world.release(i, i);
  }
  void after() { world.check_all_freed(); }
};

// FrameDebt I3: one call says true, and it comes after all others, whoever is first.
struct ExactlyOneCallSeesTheDebtPaid : rl::test_suite<ExactlyOneCallSeesTheDebtPaid, 3> {
  FrameDebt debt;
  Plain of_thread[3];
  int paid = 0;

  void thread(unsigned index) {
    of_thread[index].write();
    if (!(index == 0 ? debt.settle(2) : debt.repay())) return;
    ++paid;
    for (Plain& bytes : of_thread) bytes.write(2);
  }
  void after() { RL_ASSERT(paid == 1); }
};

}  // namespace

int main() {
  weft_model::Report report("FrameReturnModel");
  report.check<OwnerTakesWhatOthersPush>("OwnerTakesWhatOthersPush", weft_model::every());
  report.check<ExitRacesReleasesOfOneSlab>("ExitRacesReleasesOfOneSlab", weft_model::every());
  report.check<ExitRacesBatchesOfTwoSlabs>("ExitRacesBatchesOfTwoSlabs", weft_model::every());
  report.check<ExitRacesOneReleaser>("ExitRacesOneReleaser", weft_model::every());
  report.check<ExactlyOneCallSeesTheDebtPaid>("ExactlyOneCallSeesTheDebtPaid", weft_model::every());
  return report.result();
}
