// SPDX-License-Identifier: MIT
#include "weft/core/frame_pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "weft/atomic/atomic.h"
#include "weft/base/assert.h"
#include "weft/core/frame_return.h"

// A sanitizer must see every frame as an allocation of its own. WEFT_FRAME_POOL_FORCE keeps the
// pool, for the tests that let TSan look at the pool itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_FRAME_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define WEFT_FRAME_SANITIZED 1
#endif
#endif

namespace weft::inline v0 {
namespace detail {
namespace {

#if defined(WEFT_FRAME_SANITIZED) && !defined(WEFT_FRAME_POOL_FORCE)
constexpr bool kPooled = false;
#else
constexpr bool kPooled = true;
#endif

// --- Size classes -------------------------------------------------------------------------------

constexpr std::size_t kCoarseFirstBit = std::bit_width(kFineFrameBytesMax) - 1;
constexpr std::size_t kClasses =
    kFineClasses + 4 * (std::bit_width(kPooledFrameBytesMax) - 1 - kCoarseFirstBit);

constexpr std::size_t class_of(std::size_t bytes) {
  if (bytes <= kFineFrameBytesMax) return fine_class_of(bytes);
  const std::size_t last = bytes - 1;
  const std::size_t bit = std::bit_width(last) - 1;
  return kFineClasses + 4 * (bit - kCoarseFirstBit) + ((last >> (bit - 2)) & 3);
}

constexpr std::size_t class_bytes(std::size_t size_class) {
  if (size_class == 0) return kFrameAlignment;
  if (size_class < kFineClasses) return size_class * kFrameAlignment;
  const std::size_t step = size_class - kFineClasses;
  return (5 + step % 4) << (kCoarseFirstBit - 2 + step / 4);
}

static_assert(class_of(kPooledFrameBytesMax) == kClasses - 1);
static_assert(class_bytes(kClasses - 1) == kPooledFrameBytesMax);
static_assert(class_bytes(class_of(1025)) == 1280 && class_bytes(class_of(1281)) == 1536);

// --- Slabs and pools ----------------------------------------------------------------------------

struct Pool;

// The head of kSlabBytes of memory; blocks of one class follow it.
struct alignas(64) Slab {
  FrameCache* pool = nullptr;  // constant until unmapped; all that others read, beside `owed`
  FrameBlock* free = nullptr;
  std::uint32_t handed_out = 0;  // modulo 2^32: the difference to taken_back is exact
  std::uint32_t taken_back = 0;
  Slab* prev = nullptr;  // neighbours in a class's list, or in the pool's exhausted or idle slabs
  Slab* next = nullptr;
  std::uint32_t carved_end = 0;  // offset of the first byte that never was a block
  std::uint16_t size_class = 0;
  bool listed = false;
  FrameDebt owed;  // blocks still out when the owner thread exited

  std::uint32_t blocks_out() const { return handed_out - taken_back; }
};
static_assert(sizeof(Slab) == 64 && sizeof(Slab) % kFrameAlignment == 0);
static_assert(sizeof(Slab) * 1000 < kSlabBytes, "a slab's header costs less than 0.1 %");
static_assert(sizeof(Slab) + kPooledFrameBytesMax <= kSlabBytes);

// In the place of a list's first slab where there is none: it is empty, so that the hot path needs
// no second test. Never written.
constinit Slab no_slab;

// Blocks of one other pool, released here. While it holds one of them, that pool exists (I4).
struct Outgoing {
  Pool* owner = nullptr;
  FrameBlock* first = nullptr;
  FrameBlock* last = nullptr;
  std::uint32_t count = 0;
};

// What one thread owns. A heap object: it outlives its thread while blocks of it are out.
//
// Invariants, beside I1–I4
//   P1  a slab with a free block or memory not yet carved is listed under its class or idle; of the
//       listed ones only the first may have neither.
//   P2  a slab on `exhausted` has every block out, or spare.
struct Pool : FrameCache {
  std::array<Slab*, kClasses> classes;  // the first slab of each size class that may have blocks

  Slab* exhausted = nullptr;
  Slab* idle = nullptr;  // empty slabs, linked by next
  std::size_t idle_count = 0;
  std::size_t slab_count = 0;  // all, idle ones too
  std::size_t sweep_at = kSweepSlabsMin;
  std::uint64_t released_at_trim = 0;
  bool returned_since_trim = false;
  std::byte* fresh = nullptr;  // mapped and never used
  std::byte* fresh_end = nullptr;

  std::array<Outgoing, kOutgoingOwnersMax> outgoing{};
  std::size_t outgoing_next = 0;  // whom to evict
  std::uint64_t outgoing_count = 0;

  Pool* registry_prev = nullptr;
  Pool* registry_next = nullptr;

  // Written by other threads: a line of its own.
  alignas(64) FrameReturns returns;
  FrameDebt slabs_owed;

  constexpr Pool() { classes.fill(&no_slab); }
};

// In the place of a thread's pool where there is none. Never written.
constinit Pool no_pool;

[[gnu::tls_model("initial-exec")]] constinit thread_local bool this_thread_exited = false;

Pool& this_pool() noexcept { return static_cast<Pool&>(*this_frame_cache); }
Pool* pool_of(const Slab& slab) noexcept { return static_cast<Pool*>(slab.pool); }

// The user's allocator, or nullptr.
constinit Atomic<const FrameAllocator*> user_allocator{nullptr};

// All pools whose thread lives, and what is live in the name of others: pools that are gone,
// threads without one.
constinit std::mutex registry_mutex;
constinit Pool* registry = nullptr;
constinit Atomic<std::int64_t> live_unregistered{0};

// For tests: slabs in existence, whoever's.
constinit Atomic<std::int64_t> slabs_everywhere{0};

[[gnu::always_inline]] inline Slab* slab_of(void* block) {
  return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(block) & ~(kSlabBytes - 1));
}

// --- Memory from the system ---------------------------------------------------------------------

void unmap(void* address, std::size_t bytes) noexcept {
  if (bytes == 0 || ::munmap(address, bytes) == 0) return;
  // Unmapping from the middle can fail at the kernel's bound on mappings. The pages go back all the
  // same; only the addresses stay taken.
  ::madvise(address, bytes, MADV_DONTNEED);
}

void unmap_slab(Slab* slab) noexcept {
  slabs_everywhere.fetch_sub(1, relaxed);
  unmap(slab, kSlabBytes);
}

// Throws std::bad_alloc.
void map_fresh(Pool& pool) {
  const bool huge = pool.slab_count >= kHugePagesFromSlabs;
  const std::size_t wanted = huge ? kHugeMappingBytes : kSlabsPerMapping * kSlabBytes;
  const std::size_t aligned = huge ? kHugePageBytes : kSlabBytes;
  // So much more, to cut an aligned run out of it.
  void* mapped =
      ::mmap(nullptr, wanted + aligned, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) & (aligned - 1);
  unmap(begin, before);
  pool.fresh = begin + before;
  pool.fresh_end = pool.fresh + wanted;
  unmap(pool.fresh_end, aligned - before);
  if (huge) ::madvise(pool.fresh, wanted, MADV_HUGEPAGE);  // a wish: a kernel may not know it
}

// --- Lists of slabs -----------------------------------------------------------------------------

void list_behind_first(Pool& pool, Slab& slab) noexcept {
  Slab*& first = pool.classes[slab.size_class];
  if (first == &no_slab) {
    slab.prev = slab.next = nullptr;
    first = &slab;
  } else {
    slab.prev = first;
    slab.next = first->next;
    if (slab.next) slab.next->prev = &slab;
    first->next = &slab;
  }
  slab.listed = true;
}

void unlist(Pool& pool, Slab& slab) noexcept {
  if (slab.next) slab.next->prev = slab.prev;
  if (slab.prev) {
    slab.prev->next = slab.next;
  } else {
    pool.classes[slab.size_class] = slab.next ? slab.next : &no_slab;
  }
  slab.listed = false;
}

void move_to_exhausted(Pool& pool, Slab& slab) noexcept {
  unlist(pool, slab);
  slab.prev = nullptr;
  slab.next = pool.exhausted;
  if (slab.next) slab.next->prev = &slab;
  pool.exhausted = &slab;
}

void move_back_from_exhausted(Pool& pool, Slab& slab) noexcept {
  if (slab.next) slab.next->prev = slab.prev;
  (slab.prev ? slab.prev->next : pool.exhausted) = slab.next;
  list_behind_first(pool, slab);
}

void move_to_idle(Pool& pool, Slab& slab) noexcept {
  unlist(pool, slab);
  slab.next = pool.idle;
  pool.idle = &slab;
  ++pool.idle_count;
}

// --- Blocks, owner side -------------------------------------------------------------------------

// Requires: slab.free is not empty.
[[gnu::always_inline]] inline void* pop(Slab& slab) {
  FrameBlock* block = slab.free;
  slab.free = block->next;
  ++slab.handed_out;
  return block;
}

[[gnu::always_inline]] inline void push_listed(Slab& slab, FrameBlock* block) {
  block->next = slab.free;
  slab.free = block;
  ++slab.taken_back;
}

// Out of line, so that the hot path ends in a jump and saves no registers.
[[gnu::noinline]] void push_exhausted(Pool& pool, FrameBlock* block) noexcept {
  Slab& slab = *slab_of(block);
  move_back_from_exhausted(pool, slab);
  push_listed(slab, block);
}

[[gnu::always_inline]] inline void push(Pool& pool, FrameBlock* block) {
  Slab& slab = *slab_of(block);
  if (!slab.listed) [[unlikely]]
    return push_exhausted(pool, block);
  push_listed(slab, block);
}

void push_spares(Pool& pool) noexcept {
  for (FrameBlock*& spare : pool.spares) {
    if (spare) push(pool, std::exchange(spare, nullptr));
  }
}

// Moves empty slabs to the idle list, but leaves up to `keep_in_place` of those that are first in
// their class. Returns: how many it left.
std::size_t sweep(Pool& pool, std::size_t keep_in_place) noexcept {
  push_spares(pool);
  std::size_t kept = 0;
  for (Slab* first : pool.classes) {
    if (first == &no_slab) continue;
    for (Slab* slab = first; slab != nullptr;) {
      Slab* next = slab->next;
      if (slab->blocks_out() == 0) {
        if (slab == first && kept < keep_in_place) {
          ++kept;
        } else {
          move_to_idle(pool, *slab);
        }
      }
      slab = next;
    }
  }
  return kept;
}

// L8: a turn's worth of fresh blocks at a time, in address order. Returns: false if the slab is
// used up.
bool carve(Slab& slab) noexcept {
  const std::size_t bytes = class_bytes(slab.size_class);
  std::size_t count = (kSlabBytes - slab.carved_end) / bytes;
  if (count == 0) return false;
  if (count > kCarveBytes / bytes) count = kCarveBytes < bytes ? 1 : kCarveBytes / bytes;

  std::byte* at = reinterpret_cast<std::byte*>(&slab) + slab.carved_end;
  slab.carved_end += static_cast<std::uint32_t>(count * bytes);
  FrameBlock** link = &slab.free;
  for (; count != 0; --count, at += bytes) {
    auto* block = ::new (at) FrameBlock{nullptr};
    *link = block;
    link = &block->next;
  }
  return true;
}

// The blocks of an empty slab lie in its free list in the order in which they came back, which may
// be any. Carved anew they are in address order: the next million tasks are read as fast as the first.
void restore_order(Slab& slab) noexcept {
  if (&slab == &no_slab || slab.blocks_out() != 0) return;
  slab.free = nullptr;
  slab.carved_end = sizeof(Slab);
}

void take_back(Pool& pool, FrameBlock* chain) noexcept {
  pool.returned_since_trim |= chain != nullptr;
  while (chain != nullptr) {
    FrameBlock* block = chain;
    chain = chain->next;
    WEFT_DEBUG_ASSERT(pool_of(*slab_of(block)) == &pool, "a block goes home to its own pool");
    push(pool, block);
  }
}

// Throws std::bad_alloc.
Slab& add_slab(Pool& pool, std::size_t size_class) {
  if (pool.idle == nullptr && pool.slab_count >= pool.sweep_at) {
    // L8, also where nobody trims: an old size's empty slabs serve the new size. Doubling makes it
    // O(1) each.
    sweep(pool, 0);
    pool.sweep_at = 2 * (pool.slab_count - pool.idle_count);
    if (pool.sweep_at < kSweepSlabsMin) pool.sweep_at = kSweepSlabsMin;
  }
  Slab* slab = pool.idle;
  if (slab != nullptr) {
    pool.idle = slab->next;
    --pool.idle_count;
  } else {
    if (pool.fresh == pool.fresh_end) map_fresh(pool);
    slab = ::new (pool.fresh) Slab;
    slab->pool = &pool;
    pool.fresh += kSlabBytes;
    slabs_everywhere.fetch_add(1, relaxed);
    ++pool.slab_count;
  }
  restore_order(*slab);
  slab->size_class = static_cast<std::uint16_t>(size_class);
  list_behind_first(pool, *slab);
  return *slab;
}

// --- Blocks, everyone else's side ---------------------------------------------------------------

// The last block of an orphaned slab has come back.
void free_orphan(Slab* slab) noexcept {
  Pool* pool = pool_of(*slab);
  unmap_slab(slab);
  if (pool->slabs_owed.repay()) delete pool;
}

// Requires: the chain's blocks belong to `owner`, which is not this thread's pool.
void hand_over(Pool* owner, FrameBlock* first, FrameBlock* last) noexcept {
  // I3 of FrameReturns: after a push that succeeded, *owner may be gone.
  if (owner->returns.push(first, last)) return;
  // The owner has exited: nobody will use these blocks again, but each brings its slab nearer to
  // its end. I4: the slabs of the blocks still in our hands exist, and so does their pool.
  last->next = nullptr;
  while (first != nullptr) {
    FrameBlock* next = first->next;
    Slab* slab = slab_of(first);
    if (slab->owed.repay()) free_orphan(slab);
    first = next;
  }
}

void flush(Pool& pool, Outgoing& batch) noexcept {
  pool.outgoing_count -= batch.count;
  Pool* owner = batch.owner;
  FrameBlock* first = batch.first;
  FrameBlock* last = batch.last;
  batch = Outgoing{};
  hand_over(owner, first, last);
}

void flush_all(Pool& pool) noexcept {
  if (pool.outgoing_count == 0) return;
  for (Outgoing& batch : pool.outgoing) {
    if (batch.count != 0) flush(pool, batch);
  }
}

// Returns: the batch for this owner, or an empty one. O(kOutgoingOwnersMax).
Outgoing& batch_for(Pool& pool, Pool* owner) noexcept {
  Outgoing* empty = nullptr;
  for (Outgoing& batch : pool.outgoing) {
    if (batch.owner == owner) return batch;
    if (batch.owner == nullptr) empty = &batch;
  }
  if (empty != nullptr) return *empty;
  Outgoing& evicted = pool.outgoing[pool.outgoing_next];
  pool.outgoing_next = (pool.outgoing_next + 1) % kOutgoingOwnersMax;
  flush(pool, evicted);
  return evicted;
}

void collect(Pool& pool, Pool* owner, FrameBlock* block) noexcept {
  Outgoing& batch = batch_for(pool, owner);
  batch.owner = owner;
  block->next = batch.first;
  batch.first = block;
  if (batch.last == nullptr) batch.last = block;
  ++pool.outgoing_count;
  if (++batch.count == kOutgoingBatchMax) flush(pool, batch);
}

// --- A pool's birth and end ---------------------------------------------------------------------

void enter_registry(Pool& pool) noexcept {
  std::lock_guard lock(registry_mutex);
  pool.registry_next = registry;
  if (registry) registry->registry_prev = &pool;
  registry = &pool;
}

std::int64_t live_of(const Pool& pool) noexcept {
  return static_cast<std::int64_t>(pool.handed_out.load(relaxed) - pool.released.load(relaxed));
}

void leave_registry(Pool& pool) noexcept {
  std::lock_guard lock(registry_mutex);
  if (pool.registry_next) pool.registry_next->registry_prev = pool.registry_prev;
  (pool.registry_prev ? pool.registry_prev->registry_next : registry) = pool.registry_next;
  live_unregistered.fetch_add(live_of(pool), relaxed);  // relaxed: the sum orders nothing
}

// Settles one list of slabs. Returns: its length.
std::int32_t orphan(Slab* slab) noexcept {
  std::int32_t count = 0;
  while (slab != nullptr && slab != &no_slab) {
    Slab* next = slab->next;  // before settle(): afterwards another thread may unmap the slab
    ++count;
    if (slab->owed.settle(static_cast<std::int32_t>(slab->blocks_out()))) free_orphan(slab);
    slab = next;
  }
  return count;
}

// The owner's last act. Slabs without live blocks go at once; the others when their last block
// comes back, and the pool with the last of them. No order of this against other threads' releases
// loses or doubles a block: close() splits the returns into those before (taken back here, so not
// in blocks_out) and those after (repaid one by one, possibly before settle(), which FrameDebt
// allows for).
void retire(Pool* pool) noexcept {
  flush_all(*pool);
  push_spares(*pool);
  take_back(*pool, pool->returns.close());
  leave_registry(*pool);
  while (Slab* slab = pool->idle) {
    pool->idle = slab->next;
    unmap_slab(slab);
  }
  unmap(pool->fresh, static_cast<std::size_t>(pool->fresh_end - pool->fresh));

  std::int32_t slabs = orphan(pool->exhausted);
  for (Slab* first : pool->classes) slabs += orphan(first);
  if (pool->slabs_owed.settle(slabs)) delete pool;
}

// A pthread key and no thread_local with a destructor: it runs after all of those, and not at all
// on the thread that calls exit(), whose pool therefore serves static destructors too and ends with
// the process.
void on_thread_exit(void* pool) noexcept {
  this_thread_exited = true;
  this_frame_cache = &no_pool;
  retire(static_cast<Pool*>(pool));
}

struct ExitKey {
  ExitKey() noexcept {
    valid = ::pthread_key_create(&key, [](void* p) { on_thread_exit(p); }) == 0;
  }
  pthread_key_t key{};
  bool valid = false;
};

// Returns: the calling thread's pool, made if need be; nullptr if memory is short or the thread has
// exited.
[[gnu::noinline]] Pool* own_pool() noexcept {
  if (this_frame_cache != &no_pool) return &this_pool();
  if (this_thread_exited) return nullptr;
  static const ExitKey exit_key;
  auto* pool = exit_key.valid ? new (std::nothrow) Pool : nullptr;
  if (pool == nullptr) return nullptr;
  if (::pthread_setspecific(exit_key.key, pool) != 0) {
    delete pool;
    return nullptr;
  }
  enter_registry(*pool);
  this_frame_cache = pool;
  return pool;
}

// --- The cold halves of allocate and release ----------------------------------------------------

// Throws std::bad_alloc.
void* allocate_from(Pool& pool, std::size_t size_class) {
  take_back(pool, pool.returns.take());
  for (;;) {  // ends: each turn takes one slab off a list that does not grow
    Slab* slab = pool.classes[size_class];
    if (slab == &no_slab) slab = &add_slab(pool, size_class);
    if (slab->free != nullptr || carve(*slab)) {
      FrameCache::count_one(pool.handed_out);
      return pop(*slab);
    }
    move_to_exhausted(pool, *slab);
    restore_order(*pool.classes[size_class]);
  }
}

// A thread past its end, in the destructor of some other library's key: a pool for one block,
// orphaned at once.
void* allocate_after_exit(std::size_t size_class) {
  auto* pool = new Pool;
  enter_registry(*pool);
  void* block = nullptr;
  try {
    block = allocate_from(*pool, size_class);
  } catch (...) {
    retire(pool);
    throw;
  }
  retire(pool);
  return block;
}

[[gnu::noinline]] void* allocate_slow(std::size_t size_class) {
  if (Pool* pool = own_pool()) return allocate_from(*pool, size_class);
  if (!this_thread_exited) throw std::bad_alloc();
  return allocate_after_exit(size_class);
}

[[gnu::noinline]] void release_foreign(Pool* owner, FrameBlock* block) noexcept {
  if (Pool* pool = own_pool()) {
    FrameCache::count_one(pool->released);
    collect(*pool, owner, block);
  } else {
    live_unregistered.fetch_sub(1, relaxed);
    hand_over(owner, block, block);
  }
}

[[gnu::always_inline]] inline void* allocate_pooled(std::size_t size_class) {
  Pool& pool = this_pool();
  Slab& slab = *pool.classes[size_class];
  if (slab.free == nullptr) [[unlikely]]
    return allocate_slow(size_class);
  FrameCache::count_one(pool.handed_out);
  return pop(slab);
}

[[gnu::always_inline]] inline void release_pooled(
    void* memory, [[maybe_unused]] std::size_t size_class) noexcept {
  Pool& pool = this_pool();
  Slab& slab = *slab_of(memory);
  WEFT_DEBUG_ASSERT(slab.size_class == size_class,
                    "a frame is released with the size it was allocated with");
#ifndef NDEBUG
  std::memset(memory, 0xDB,
              class_bytes(size_class));  // whoever still reads this frame shall notice
#endif
  auto* block = ::new (memory) FrameBlock;
  if (pool_of(slab) != &pool) [[unlikely]]
    return release_foreign(pool_of(slab), block);
  FrameCache::count_one(pool.released);
#ifndef NDEBUG  // otherwise release_frame() has looked
  if (size_class < kFineClasses && !pool.spares[size_class]) {
    pool.spares[size_class] = block;
    return;
  }
#endif
  push(pool, block);
}

// Counts a block that is not of the pool.
void count_unpooled(std::int64_t change) noexcept {
  if (Pool* pool = own_pool()) {
    FrameCache::count_one(change > 0 ? pool->handed_out : pool->released);
  } else {
    live_unregistered.fetch_add(change, relaxed);
  }
}

bool is_pooled(std::size_t bytes) noexcept {
  return bytes <= kPooledFrameBytesMax && frames_pooled.load(relaxed);
}

[[gnu::noinline]] void* allocate_elsewhere(std::size_t bytes) {
  void* block = nullptr;
  if (const FrameAllocator* user =
          user_allocator.load(acquire)) {  // pairs with set_frame_allocator()
    block = user->allocate(bytes, user->context);
    if (block == nullptr) throw std::bad_alloc();
    WEFT_ASSERT(reinterpret_cast<std::uintptr_t>(block) % kFrameAlignment == 0,
                "a FrameAllocator returns memory that is aligned to 16 bytes");
  } else {
    block = ::operator new(bytes, std::align_val_t{kFrameAlignment});
  }
  count_unpooled(+1);
  return block;
}

[[gnu::noinline]] void release_elsewhere(void* block, std::size_t bytes) noexcept {
  count_unpooled(-1);
  if (const FrameAllocator* user = user_allocator.load(acquire)) {  // likewise
    user->release(block, bytes, user->context);
  } else {
    ::operator delete(block, bytes, std::align_val_t{kFrameAlignment});
  }
}

}  // namespace

// --- The seam to frame_cache.h ------------------------------------------------------------------

constinit thread_local FrameCache* this_frame_cache = &no_pool;
constinit Atomic<bool> frames_pooled{kPooled};

void* allocate_frame_slow(std::size_t bytes) {
  if (bytes <= kFineFrameBytesMax && frames_pooled.load(relaxed)) [[likely]]
    return allocate_pooled(fine_class_of(bytes));
  return is_pooled(bytes) ? allocate_pooled(class_of(bytes)) : allocate_elsewhere(bytes);
}

void release_frame_slow(void* block, std::size_t bytes) noexcept {
  if (bytes <= kFineFrameBytesMax && frames_pooled.load(relaxed)) [[likely]]
    return release_pooled(block, fine_class_of(bytes));
  is_pooled(bytes) ? release_pooled(block, class_of(bytes)) : release_elsewhere(block, bytes);
}

std::size_t frame_block_bytes(std::size_t bytes) noexcept {
  return kPooled && bytes <= kPooledFrameBytesMax ? class_bytes(class_of(bytes)) : bytes;
}

bool frames_are_pooled() noexcept { return kPooled; }

std::int64_t frame_slabs_everywhere() noexcept { return slabs_everywhere.load(relaxed); }

}  // namespace detail

// --- The public face ----------------------------------------------------------------------------

FrameStats frame_stats() noexcept {
  using namespace detail;
  const Pool& pool = this_pool();
  return {.blocks_handed_out = pool.handed_out.load(relaxed),
          .blocks_released = pool.released.load(relaxed),
          .blocks_live = live_of(pool),
          .blocks_outgoing = pool.outgoing_count,
          .slab_bytes = pool.slab_count * kSlabBytes};
}

void flush_foreign_frames() noexcept { detail::flush_all(detail::this_pool()); }

void trim_frames() noexcept {
  using namespace detail;
  Pool& pool = this_pool();
  if (&pool == &no_pool) return;
  flush_all(pool);
  take_back(pool, pool.returns.take());
  const std::uint64_t released = pool.released.load(relaxed);
  if (!pool.returned_since_trim && released == pool.released_at_trim) return;
  pool.returned_since_trim = false;
  pool.released_at_trim = released;

  // What a class uses stays in its place, so that the next turn carves nothing anew; the bound is
  // for both together.
  const std::size_t kept = sweep(pool, kIdleSlabsKept);
  while (pool.idle_count > kIdleSlabsKept - kept) {
    Slab* slab = pool.idle;
    pool.idle = slab->next;
    --pool.idle_count;
    --pool.slab_count;
    unmap_slab(slab);
  }
}

void set_frame_allocator(const FrameAllocator* allocator) {
  using namespace detail;
  std::lock_guard lock(registry_mutex);
  std::int64_t live = live_unregistered.load(relaxed);
  for (Pool* pool = registry; pool != nullptr; pool = pool->registry_next) live += live_of(*pool);
  if (live != 0) {
    throw_usage_error(
        "set_frame_allocator() while frames are live: a frame must be released by the allocator "
        "that made it; "
        "call it at start-up, or when every task and loop is gone");
  }
  for (Pool* pool = registry; pool != nullptr; pool = pool->registry_next)
    push_spares(*pool);  // F2
  frames_pooled.store(kPooled && allocator == nullptr, relaxed);
  user_allocator.store(
      allocator, release);  // publishes *allocator to allocate_elsewhere() and release_elsewhere()
}

}  // namespace weft::inline v0
