// SPDX-License-Identifier: MIT
#include "weft/time/timer_wheel.h"

#include <bit>
#include <cstddef>

#include "weft/base/assert.h"

namespace weft::inline v0::detail {

namespace {

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

constexpr std::uint64_t to_wheel(std::int64_t ns) {
  return static_cast<std::uint64_t>(ns) ^ kSignBit;
}

constexpr std::int64_t from_wheel(std::uint64_t time) {
  return static_cast<std::int64_t>(time ^ kSignBit);
}

// Two lists linked by next and ended by nullptr. Equal deadlines: those of `older` first.
TimerNode* merge(TimerNode* older, TimerNode* newer) noexcept {
  TimerNode* merged = nullptr;
  TimerNode** link = &merged;
  while (older != nullptr && newer != nullptr) {
    TimerNode*& from = newer->deadline_ns < older->deadline_ns ? newer : older;
    *link = from;
    link = &from->next;
    from = from->next;
  }
  *link = older != nullptr ? older : newer;
  return merged;
}

}  // namespace

TimerWheel::TimerWheel(std::int64_t now_ns) noexcept : time_(to_wheel(now_ns)) {}

TimerWheel::~TimerWheel() {
  WEFT_DEBUG_ASSERT(size_ == 0, "a loop's timers are disarmed or fired before the loop ends");
}

std::int64_t TimerWheel::time() const noexcept { return from_wheel(time_); }

TimerWheel::Place TimerWheel::place_of(std::uint64_t deadline) const noexcept {
  const std::uint64_t differs = (deadline ^ time_) >> kTickBits;
  if (differs == 0) return {-1, 0};
  const int level = (63 - std::countl_zero(differs)) / kDigitBits;
  return {level, static_cast<int>((deadline >> (kTickBits + level * kDigitBits)) & (kSlots - 1))};
}

// Requires: a slot has a node.
TimerWheel::Place TimerWheel::earliest_place() const noexcept {
  const int level = std::countr_zero(levels_used_);
  return {level, slots_used_[level].first()};
}

int TimerWheel::Bits::first() const noexcept {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (words_[i] != 0) return static_cast<int>(i) * 64 + std::countr_zero(words_[i]);
  }
  return kSlots;
}

// Its last node has left.
void TimerWheel::mark_empty(Place place) noexcept {
  Bits& used = slots_used_[place.level];
  used.clear(place.slot);
  if (used.first() == kSlots) levels_used_ &= ~(1u << place.level);
}

// The first instant of a slot: the digits of time_ above its level, its own digit, zeros below.
std::uint64_t TimerWheel::start_of(Place place) const noexcept {
  const int shift = kTickBits + place.level * kDigitBits;
  // The topmost level has no digits above; shifting by 64 or more is not defined.
  const std::uint64_t above =
      place.level == kLevels - 1 ? 0 : ~std::uint64_t{0} << (shift + kDigitBits);
  return (time_ & above) | (static_cast<std::uint64_t>(place.slot) << shift);
}

namespace {
void insert_after(TimerNode& at, TimerNode& node) noexcept {
  node.prev = &at;
  node.next = at.next;
  at.next->prev = &node;
  at.next = &node;
}
}  // namespace

void TimerWheel::append(TimerNode& node) noexcept {
  const auto [level, slot] = place_of(to_wheel(node.deadline_ns));
  if (level < 0) return append_now(node);
  TimerNode*& first = first_[level][slot];
  if (first == nullptr) {
    node.prev = node.next = first = &node;
    slots_used_[level].set(slot);
    ordered_[level].set(slot);
    levels_used_ |= 1u << level;
    return;
  }
  TimerNode* last = first->prev;
  if (node.deadline_ns < last->deadline_ns) ordered_[level].clear(slot);
  insert_after(*last, node);
}

// Most belong at the end, or near it.
void TimerWheel::append_now(TimerNode& node) noexcept {
  if (now_ == nullptr) {
    node.prev = node.next = now_ = &node;
    now_ordered_ = true;
    return;
  }
  TimerNode* at = now_->prev;
  if (now_ordered_) {
    for (int steps = 0; node.deadline_ns < at->deadline_ns; at = at->prev) {
      if (at == now_) {  // before all others
        insert_after(*now_->prev, node);
        now_ = &node;
        return;
      }
      if (++steps == kInsertMax) {
        now_ordered_ = false;
        at = now_->prev;
        break;
      }
    }
  }
  insert_after(*at, node);
}

void TimerWheel::unlink(TimerNode& node, Place place) noexcept {
  const auto [level, slot] = place;
  TimerNode*& first = level < 0 ? now_ : first_[level][slot];
  WEFT_DEBUG_ASSERT(first != nullptr, "a timer is disarmed on the loop that it was armed on");
  if (node.next == &node) {
    WEFT_DEBUG_ASSERT(first == &node, "a timer is disarmed on the loop that it was armed on");
    first = nullptr;
    if (level >= 0) mark_empty(place);
  } else {
    node.prev->next = node.next;
    node.next->prev = node.prev;
    if (first == &node) first = node.next;
  }
  node.prev = node.next = nullptr;
}

void TimerWheel::arm(TimerNode& node, std::int64_t deadline_ns) noexcept {
  WEFT_DEBUG_ASSERT(node.fire != nullptr, "a timer has something to fire");
  disarm(node);
  node.deadline_ns = deadline_ns < time() ? time() : deadline_ns;  // I1
  append(node);
  ++size_;
}

void TimerWheel::disarm(TimerNode& node) noexcept {
  if (!node.armed()) return;
  unlink(node, place_of(to_wheel(node.deadline_ns)));  // I2
  --size_;
}

namespace {

// A list in memory is read at the pace of its cache misses, one after the other. From both ends there
// are two at a time; and what lies around a node, which its firing will touch, comes along.
void warm_up(TimerNode* first) noexcept {
  TimerNode* forward = first;
  TimerNode* backward = first->prev;
  while (forward != backward) {
    auto* around = reinterpret_cast<const std::byte*>(forward);
    auto* around_other = reinterpret_cast<const std::byte*>(backward);
    __builtin_prefetch(around - 64);
    __builtin_prefetch(around - 128);
    __builtin_prefetch(around_other - 64);
    __builtin_prefetch(around_other - 128);
    TimerNode* next = forward->next;
    if (next == backward) break;
    forward = next;
    backward = backward->prev;
  }
}

}  // namespace

// Requires: time_ has just become the start of this slot, so that all its nodes belong further
// down; and now_ is empty.
void TimerWheel::move_down(Place place) noexcept {
  const auto [level, slot] = place;
  TimerNode* const first = first_[level][slot];
  first_[level][slot] = nullptr;
  mark_empty(place);
  if (level == 0) {  // such a slot is one tick: its list goes over as it is
    warm_up(first);  // they are about to fire, and few enough to stay
    now_ = first;
    now_ordered_ = ordered_[0].has(slot);
    return;
  }
  TimerNode* node = first;
  do {  // I3: in list order
    TimerNode* next = node->next;
    append(*node);
    node = next;
  } while (node != first);
}

namespace {

// A stable natural merge sort, in place: bins[i] holds what 2^i runs became, older runs in higher
// bins. Takes and returns a list ended by nullptr.
TimerNode* merge_sorted(TimerNode* rest) noexcept {
  std::array<TimerNode*, 64> bins{};
  while (rest != nullptr) {
    TimerNode* run = rest;
    TimerNode* last = rest;
    while (last->next != nullptr && last->next->deadline_ns >= last->deadline_ns) last = last->next;
    rest = last->next;
    last->next = nullptr;
    std::size_t bin = 0;
    for (; bins[bin] != nullptr; ++bin) {
      run = merge(bins[bin], run);
      bins[bin] = nullptr;
    }
    bins[bin] = run;
  }
  TimerNode* all = nullptr;
  for (TimerNode* bin : bins) all = merge(bin, all);
  return all;
}

constexpr int kShareBits = 6;

// Whether there are enough nodes for shares of several.
bool is_long(const TimerNode* node) noexcept {
  int count = 0;
  for (; node != nullptr && count < 2 << kShareBits; node = node->next) ++count;
  return node != nullptr;
}

}  // namespace

// Takes and returns a circular list of one tick; stable. A long list is dealt out by the leading
// digit within the tick and each share sorted by itself: merging the whole takes twice as long.
TimerNode* TimerWheel::sorted(TimerNode* first) noexcept {
  TimerNode head;
  TimerNode* last = &head;
  const auto link_sorted = [&last](TimerNode* nodes) {
    last->next = merge_sorted(nodes);
    for (; last->next != nullptr; last = last->next) last->next->prev = last;
  };

  first->prev->next = nullptr;
  if (!is_long(first)) {
    link_sorted(first);
  } else {
    struct Share {
      TimerNode* first = nullptr;
      TimerNode** end = &first;
    };
    std::array<Share, 1 << kShareBits> shares;
    for (TimerNode* node = first; node != nullptr; node = node->next) {
      const std::uint64_t digits = to_wheel(node->deadline_ns) >> (kTickBits - kShareBits);
      Share& share = shares[digits % shares.size()];
      *share.end = node;
      share.end = &node->next;
    }
    for (Share& share : shares) {
      *share.end = nullptr;
      link_sorted(share.first);
    }
  }
  last->next = head.next;
  head.next->prev = last;
  return head.next;
}

TimerNode& TimerWheel::first_of_now() noexcept {
  if (!now_ordered_) {
    now_ = sorted(now_);
    now_ordered_ = true;
  }
  return *now_;
}

std::optional<std::int64_t> TimerWheel::next_deadline() noexcept {
  if (size_ == 0) return std::nullopt;
  if (now_ != nullptr) return first_of_now().deadline_ns;
  const Place place = earliest_place();
  TimerNode* const first = first_[place.level][place.slot];
  std::int64_t earliest = first->deadline_ns;
  if (ordered_[place.level].has(place.slot)) return earliest;
  TimerNode* node = first->next;
  for (int seen = 1; node != first; node = node->next) {
    if (++seen > kScanMax) return from_wheel(start_of(place));
    if (node->deadline_ns < earliest) earliest = node->deadline_ns;
  }
  return earliest;
}

std::size_t TimerWheel::fire_due(std::int64_t now_ns, std::size_t budget) noexcept {
  WEFT_ASSERT(!firing_, "fire_due() is not called from a timer");
  firing_ = true;
  const std::uint64_t now = to_wheel(now_ns);
  std::size_t fired = 0;
  while (fired != budget && size_ != 0) {
    if (now_ == nullptr) {
      const Place place = earliest_place();
      const std::uint64_t start = start_of(place);
      if (start > now) break;
      time_ = start;
      move_down(place);
      continue;
    }
    TimerNode& node = first_of_now();
    if (node.deadline_ns > now_ns) break;
    time_ = to_wheel(node.deadline_ns);
    unlink(node, {-1, 0});
    --size_;
    ++fired;
    node.fire(node);  // from here on *node may be gone
  }
  // Nothing is due: no slot begins before `now`, and what is in now_ has its tick, so I2 holds for the
  // later time too.
  if (fired != budget && now > time_) time_ = now;
  firing_ = false;
  return fired;
}

}  // namespace weft::inline v0::detail
