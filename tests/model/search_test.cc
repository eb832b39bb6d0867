// SPDX-License-Identifier: MIT
// ReducedSearch against Relacy's full search: small random programs show the same in both.
//
// What a program shows is what each of its operations returned and where its atomics ended; the two
// searches must find the same set of that. A program with a data race, or one that can block for
// ever, must be found out by both.
#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "weft/atomic/atomic.h"
#include "weft_model.h"

namespace {

using weft_model::Mailbox;
using weft_model::Plain;

constexpr unsigned kThreads = 3;
constexpr unsigned kStepsMax = 3;
constexpr unsigned kPrograms = 500;

enum class What {
  load,
  store,
  add,
  compare,
  post,
  try_take,
  take,
  read,
  write,
  locked,
  locked_take
};
struct Operation {
  What what;
  unsigned object;  // which of the two atomics
  weft::detail::Order order;
};
struct Program {
  std::array<std::array<Operation, kStepsMax>, kThreads> steps;
  std::array<unsigned, kThreads> count;
};
Program program;

// A set of what was shown. Fixed in size and without allocation: the checker counts those.
class Shown {
 public:
  void insert(std::uint64_t key) {
    std::size_t at = key * 0x9e3779b97f4a7c15u >> 48;
    while (keys_[at] != 0 && keys_[at] != key) at = (at + 1) % kPlaces;
    if (keys_[at] == key) return;
    if (++size_ == kPlaces) std::abort();
    keys_[at] = key;
  }
  void clear() { *this = {}; }
  bool operator==(const Shown& other) const {
    return size_ == other.size_ && std::all_of(keys_.begin(), keys_.end(), [&](std::uint64_t key) {
             return key == 0 || other.contains(key);
           });
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kPlaces = 1 << 16;
  [[nodiscard]] bool contains(std::uint64_t key) const {
    std::size_t at = key * 0x9e3779b97f4a7c15u >> 48;
    while (keys_[at] != 0 && keys_[at] != key) at = (at + 1) % kPlaces;
    return keys_[at] == key;
  }

  std::array<std::uint64_t, kPlaces> keys_{};
  std::size_t size_ = 0;
};
Shown shown;

struct Runs : rl::test_suite<Runs, kThreads> {
  weft::detail::Atomic<unsigned> atomics[2]{0, 0};
  Mailbox mailbox;
  Plain plain;
  weft::detail::StateMutex mutex;
  unsigned guarded = 0;  // by it
  unsigned results[kThreads][kStepsMax] = {};

  void thread(unsigned index) {
    for (unsigned i = 0; i < program.count[index]; ++i) {
      results[index][i] = run(program.steps[index][i], 1 + index * kStepsMax + i) % 16;
    }
  }
  unsigned run(const Operation& operation, unsigned value) {
    weft::detail::Atomic<unsigned>& atomic = atomics[operation.object];
    switch (operation.what) {
      case What::load:
        return atomic.load(operation.order);
      case What::store:
        atomic.store(value, operation.order);
        return 0;
      case What::add:
        return atomic.fetch_add(value, operation.order);
      case What::compare: {
        unsigned expected = 0;
        bool done =
            atomic.compare_exchange_weak(expected, value, operation.order, weft::detail::relaxed);
        return done ? 15 : expected;
      }
      case What::post:
        mailbox.post(static_cast<int>(value));
        return 0;
      case What::try_take:
        return mailbox.try_take();
      case What::take:
        return static_cast<unsigned>(mailbox.take());
      case What::read:
        return static_cast<unsigned>(plain.read());
      case What::write:
        plain.write(static_cast<int>(value));
        return 0;
      case What::locked: {
        weft::detail::StateLock lock(mutex);
        unsigned before = std::exchange(guarded, value);
        // Seen by those that do not lock, before the others come in.
        atomic.store(value, operation.order);
        return before;
      }
      case What::locked_take: {
        weft::detail::StateLock lock(mutex);
        unsigned before = std::exchange(guarded, value);
        return before ^ static_cast<unsigned>(mailbox.take());
      }
    }
    return 0;
  }
  void after() {
    std::uint64_t key = 1;
    for (auto& of_thread : results) {
      for (unsigned result : of_thread) key = key << 4 | result;
    }
    for (auto& atomic : atomics) {
      key = key << 8 | (atomic.load(weft::detail::relaxed) & 255);
    }
    shown.insert(key);
  }
};

Program random_program(std::mt19937& random) {
  using enum weft::detail::Order;
  // Every fourth may race on plain memory, every fourth may block, every eighth locks, once per thread.
  unsigned kinds = static_cast<unsigned>(What::try_take) + 1;
  bool racy = random() % 4 == 0, blocks = random() % 4 == 0, locks = random() % 8 == 0;
  Program made{};
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    made.count[thread] = 2 + (thread == 0 && !locks);
    unsigned locked_at = random() % 2;
    for (unsigned i = 0; i < made.count[thread]; ++i) {
      auto what = static_cast<What>(random() % kinds);
      if (racy && random() % 4 == 0) what = random() % 2 ? What::read : What::write;
      if (blocks && what == What::try_take) what = What::take;
      if (locks && i == locked_at) what = what == What::take ? What::locked_take : What::locked;
      bool strong = random() % 2;
      weft::detail::Order order = relaxed;
      if (strong && what == What::load) order = acquire;
      if (strong && (what == What::store || what == What::locked)) order = release;
      if (strong && (what == What::add || what == What::compare)) order = acq_rel;
      made.steps[thread][i] = {what, static_cast<unsigned>(random() % 2), order};
    }
  }
  return made;
}

}  // namespace

int main() {
  std::mt19937 random(1);
  rl::iteration_t full_rounds = 0, reduced_rounds = 0;
  unsigned failing = 0;
  std::size_t shown_in_all = 0;
  static Shown by_full;
  for (unsigned i = 0; i < kPrograms; ++i) {
    program = random_program(random);
    rl::ostringstream history;
    shown.clear();
    weft_model::Outcome full = weft_model::examine<Runs>(weft_model::every(), 0, history);
    by_full = shown;
    shown.clear();
    weft_model::Outcome reduced =
        weft_model::examine<Runs>(weft_model::every_reduced(), 0, history);
    bool full_passed = full.result == rl::test_result_success;
    bool reduced_passed = reduced.result == rl::test_result_success;
    if (full_passed != reduced_passed || (full_passed && !(by_full == shown))) {
      std::printf("SearchModel: FAILED, program %u: %s and %zu in full, %s and %zu reduced\n", i,
                  rl::test_result_str(full.result), by_full.size(),
                  rl::test_result_str(reduced.result), shown.size());
      return 1;
    }
    failing += !full_passed;
    if (!full_passed) continue;
    full_rounds += full.rounds;
    reduced_rounds += reduced.rounds;
    shown_in_all += shown.size();
  }
  std::printf(
      "SearchModel: %u programs, %u of them wrong, found out by both; the others showed "
      "%zu different things, in %llu rounds in full and %llu reduced: ok\n",
      kPrograms, failing, shown_in_all, static_cast<unsigned long long>(full_rounds),
      static_cast<unsigned long long>(reduced_rounds));
  return failing == 0 || failing == kPrograms || reduced_rounds >= full_rounds;
}
