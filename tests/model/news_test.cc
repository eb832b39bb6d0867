// SPDX-License-Identifier: MIT
// NewsCore: who waits for something new misses nothing that came after its look, sees what was put in with it, and a
// cancelled wait leaves nothing behind. Watch and Broadcast put their values in by it.
#include "weft/sync/news_core.h"

#include "weft_model_loops.h"

namespace {

using weft::detail::NewsCore;
using weft_model::WaitList;

// Thread 0 publishes; the others wait for more than they have seen.
template <class Self, int kThreads>
struct Published : weft_model::Loops<Self, kThreads> {
  NewsCore core{0};
  weft::detail::Guarded<int> value = 0;  // how many were put in; guarded by the core
  int went_on = 0;

  void publish() {
    WaitList woken;
    auto change = [&](NewsCore::Count) { return value = value + 1, true; };
    const bool published = core.publish(change, woken);
    RL_ASSERT(published);
    this->tell(woken);
  }
  NewsCore::Count look() {
    return core.look([&](NewsCore::Count count) {
      RL_ASSERT(value == static_cast<int>(count));
      return count;
    });
  }
  // As until_changed(seen) and receive() do.
  NewsCore::Count wait(unsigned index, NewsCore::Count seen) {
    if (!core.has_news(seen) && !core.look_or_wait(this->node_of(index), seen)) {
      this->await_notify(index);
    }
    const NewsCore::Count now = look();
    RL_ASSERT(now > seen);
    ++went_on;
    return now;
  }
  void wait_and_be_cancelled(unsigned index) {
    if (core.look_or_wait(this->node_of(index), 0)) return;
    weft_model::some_time_later();
    this->end_withdrawn(index, core.withdraw(this->nodes[index]));
  }
};

// Whatever it saw of the first, it sees the last.
struct WhoWaitsSeesTheLast : Published<WhoWaitsSeesTheLast, 2> {
  void thread(unsigned index) {
    if (index == 0) return publish(), publish();
    for (NewsCore::Count seen = look(); seen < 2;) seen = wait(1, seen);
  }
};
struct OneWakesAll : Published<OneWakesAll, 3> {
  void thread(unsigned index) {
    if (index == 0) return publish();
    wait(index, 0);
  }
  void after() {
    Published::after();
    RL_ASSERT(went_on == 2);
  }
};
struct ACancelMeetsIt : Published<ACancelMeetsIt, 3> {
  void thread(unsigned index) {
    if (index == 0) return publish();
    if (index == 1) return wait_and_be_cancelled(1);
    wait(2, 0);
  }
};

// As Watch::modify(): of two that change what they saw, the second finds that out.
struct TwoThatModify : Published<TwoThatModify, 2> {
  void thread(unsigned) {
    for (bool changed = false; !changed;) {
      const NewsCore::Count seen = look();
      WaitList woken;
      auto change = [&](NewsCore::Count now) { return now == seen && (value = value + 1, true); };
      changed = core.publish(change, woken);
    }
  }
  void after() {
    Published::after();
    RL_ASSERT(look() == 2);
  }
};

// Nobody waits for what will not come.
struct AfterTheCloseNobodyWaits : Published<AfterTheCloseNobodyWaits, 3> {
  void thread(unsigned index) {
    WaitList woken;
    if (index == 0) {
      core.close(woken);
      return tell(woken);
    }
    if (index == 1) {
      auto change = [&](NewsCore::Count) { return value = value + 1, true; };
      static_cast<void>(core.publish(change, woken));
      return tell(woken);
    }
    if (!core.look_or_wait(node_of(2), 0)) await_notify(2);
    look();
  }
};

}  // namespace

int main() {
  weft_model::Report report("NewsModel");
  report.check<WhoWaitsSeesTheLast>("WhoWaitsSeesTheLast", weft_model::every_reduced());
  report.check<OneWakesAll>("OneWakesAll", weft_model::every_reduced());
  report.check<ACancelMeetsIt>("ACancelMeetsIt", weft_model::every_reduced());
  report.check<TwoThatModify>("TwoThatModify", weft_model::every_reduced());
  report.check<AfterTheCloseNobodyWaits>("AfterTheCloseNobodyWaits", weft_model::every_reduced());
  return report.result();
}
