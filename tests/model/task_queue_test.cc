// SPDX-License-Identifier: MIT
// TaskQueue: nothing is lost, nothing is taken twice, and each producer's order is kept; and with
// IdleWorkers: no task is left in a queue while every worker sleeps.
#include "weft/run/task_queue.h"

#include "weft/run/idle_workers.h"
#include "weft_model.h"

namespace {

using weft::TaskQueue;

struct Item {
  TaskQueue::Node node;
  weft_model::Plain payload;
  int producer = 0, number = 0;
  bool taken = false;

  static Item& of(TaskQueue::Node& at) { return reinterpret_cast<Item&>(at); }
};

// A queue, what is put into it, and what came out.
template <int kProducers, int kItems>
struct Shop {
  TaskQueue queue;
  Item items[kProducers][kItems];
  int taken = 0;
  int newest[kProducers];

  Shop() {
    for (int& each : newest) each = -1;
  }
  void put(int producer, int number) {
    Item& item = items[producer][number];
    item.producer = producer;
    item.number = number;
    item.payload.write(number + 1);
    queue.push(item.node);
  }
  void receive(TaskQueue::Node& node) {
    Item& item = Item::of(node);
    RL_ASSERT(!item.taken);
    RL_ASSERT(item.payload.read() == item.number + 1);
    RL_ASSERT(newest[item.producer] < item.number);
    newest[item.producer] = item.number;
    item.taken = true;
    item.payload.write(0);  // the taker's now
    ++taken;
  }
  TaskQueue::Taken take(std::size_t most) {
    return queue.take(most, [&](TaskQueue::Node& node) { receive(node); });
  }
  void check_all_taken() {
    while (take(kProducers * kItems) == TaskQueue::Taken::some) {
    }
    RL_ASSERT(taken == kProducers * kItems);
    RL_ASSERT(queue.looks_empty());
  }
};

// Two producers and a taker that looks a few times.
struct ProducersRaceATaker : rl::test_suite<ProducersRaceATaker, 3> {
  Shop<2, 1> shop;
  void thread(unsigned index) {
    if (index > 0) return shop.put(static_cast<int>(index) - 1, 0);
    for (int looks = 0; looks < 2; ++looks) static_cast<void>(shop.take(1));
  }
  void after() { shop.check_all_taken(); }
};

struct OrderIsKept : rl::test_suite<OrderIsKept, 2> {
  Shop<1, 3> shop;
  void thread(unsigned index) {
    if (index == 1) {
      for (int number = 0; number < 3; ++number) shop.put(0, number);
      return;
    }
    for (int looks = 0; looks < 2; ++looks) static_cast<void>(shop.take(2));
  }
  void after() { shop.check_all_taken(); }
};

// The owner and a thief: never both at once.
struct TwoTakersRace : rl::test_suite<TwoTakersRace, 3> {
  Shop<1, 2> shop;
  void thread(unsigned index) {
    if (index == 2) {
      for (int number = 0; number < 2; ++number) shop.put(0, number);
      return;
    }
    for (int looks = 0; looks < 2; ++looks) static_cast<void>(shop.take(1));
  }
  void after() { shop.check_all_taken(); }
};

// --- With workers that sleep --------------------------------------------------------------------

// Workers as src/run/worker.cc has them: take, search, park, look again, sleep; producers as
// IOContext has them: push, then notify.
// kIdle: the workers have found nothing when the round begins, and are about to park.
template <class Self, int kWorkers, int kProducers, int kItems, bool kIdle>
struct Office : rl::test_suite<Self, kWorkers + kProducers> {
  static constexpr int kTotal = kProducers * kItems;

  Shop<kProducers, kItems> shop;
  weft::detail::IdleWorkers idle;
  weft::detail::IdleWorker workers[kWorkers];
  weft_model::Mailbox wake[kWorkers];
  // Where the code looks again at once, because somebody is in the middle of a push or a take, the
  // model waits for him: every round must come to an end.
  weft_model::Mailbox progress;
  int wakes = 0;

  static constexpr int kSearch = 1, kLeave = 2;

  void thread(unsigned index) {
    if (index < kWorkers) return work(index);
    int producer = static_cast<int>(index) - kWorkers;
    for (int number = 0; number < kItems; ++number) {
      shop.put(producer, number);
      progress.post();
      notify();
    }
  }
  void notify() {
    if (weft::detail::IdleWorker* parked = idle.notify()) {
      ++wakes;
      wake[parked - workers].post(kSearch);
    }
  }
  void work(unsigned index) {
    bool searching = false;
    bool under_way = false;
    for (bool idle_now = kIdle;; idle_now = false) {
      TaskQueue::Taken taken = TaskQueue::Taken::none;
      if (!idle_now) {
        taken = take();
        // The one queue is its own, and the others' that it searches then.
        if (taken != TaskQueue::Taken::some && kWorkers > 1 && !searching && !under_way) {
          searching = idle.begin_search(kWorkers);
          if (searching) taken = take();
        }
      }
      if (taken == TaskQueue::Taken::some) {
        if (kWorkers > 1) progress.post();
        if (searching) {
          searching = false;
          if (idle.end_search() && !shop.queue.looks_empty()) notify();
        }
        continue;
      }
      if (!under_way) {
        idle.park(workers[index], searching);
        searching = false;
        if (!shop.queue.looks_empty()) {
          if (!idle.unpark(workers[index])) searching = under_way = true;
          progress.take();
          continue;
        }
      }
      int letter = wake[index].take();
      if (!under_way && !idle.unpark(workers[index])) searching = under_way = true;
      if (letter == kLeave) {
        if (under_way) RL_ASSERT(wake[index].take() == kSearch);
        if (searching) static_cast<void>(idle.end_search());
        return;
      }
      under_way = false;
    }
  }
  TaskQueue::Taken take() {
    bool last = false;
    TaskQueue::Taken taken = shop.queue.take(1, [&](TaskQueue::Node& node) {
      shop.receive(node);
      last = shop.taken == kTotal;  // the day is over
    });
    if (last) {
      for (auto& each : wake) each.post(kLeave);
    }
    return taken;
  }
  void after() {
    RL_ASSERT(shop.taken == kTotal);
    RL_ASSERT(wakes <= kTotal);
  }
};
// Two workers fall asleep while two tasks are added. Who was woken has not searched yet when the
// second task comes: one wake-up has to do for both, and has to be there unless a worker saw a task
// for itself.
struct TwoPushesWakeOneAtMost : rl::test_suite<TwoPushesWakeOneAtMost, 3> {
  TaskQueue queue;
  Item items[2];
  weft::detail::IdleWorkers idle;
  weft::detail::IdleWorker workers[2];
  bool saw_it[2] = {false, false};
  int wakes = 0;

  void thread(unsigned index) {
    if (index < 2) return fall_asleep(index);
    for (Item& item : items) {
      queue.push(item.node);
      if (idle.notify()) ++wakes;
    }
  }
  void fall_asleep(unsigned index) {
    idle.park(workers[index], false);
    if (queue.looks_empty()) return;
    saw_it[index] = true;
    static_cast<void>(idle.unpark(workers[index]));
  }
  void after() {
    RL_ASSERT(wakes <= 1);
    RL_ASSERT(wakes == 1 || saw_it[0] || saw_it[1]);
  }
};

struct APushFindsTheWorker : Office<APushFindsTheWorker, 1, 1, 2, false> {};
struct TwoPushersFindTheWorker : Office<TwoPushersFindTheWorker, 1, 2, 1, true> {};
struct APushFindsOneOfTwoWorkers : Office<APushFindsOneOfTwoWorkers, 2, 1, 1, true> {};

}  // namespace

int main() {
  weft_model::Report report("TaskQueueModel");
  report.check<ProducersRaceATaker>("ProducersRaceATaker", weft_model::every_reduced());
  report.check<OrderIsKept>("OrderIsKept", weft_model::every_reduced());
  report.check<TwoTakersRace>("TwoTakersRace", weft_model::every_reduced());
  report.check<TwoPushesWakeOneAtMost>("TwoPushesWakeOneAtMost", weft_model::every_reduced());
  report.check<APushFindsTheWorker>("APushFindsTheWorker", weft_model::every_reduced());
  report.check<TwoPushersFindTheWorker>("TwoPushersFindTheWorker", weft_model::every_reduced());
  report.check<APushFindsOneOfTwoWorkers>("APushFindsOneOfTwoWorkers", weft_model::every_reduced());
  return report.result();
}
