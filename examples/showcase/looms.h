// SPDX-License-Identifier: MIT
#pragma once
// showcase::Looms: something that runs, to be looked at: looms that anybody may start and stop, two weavers at each.
//
// Each worker has its run(), a nursery whose children are its looms; new ones go to one worker after the other. A loom ends
// when its event is set: any_of() cancels its weavers, and they are gone before it says goodbye.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json.h"
#include "weft/weft.h"

namespace showcase {

class Looms {
 public:
  static constexpr std::size_t kLoomsMax = 12;
  static constexpr std::size_t kAtFirst = 3;

  explicit Looms(std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i)
      orders_.push_back(std::make_unique<Orders>(kLoomsMax, "orders"));
    for (std::size_t i = 0; i < kAtFirst; ++i) static_cast<void>(add());
  }

  // Any thread. Returns: its number; nothing: there are enough.
  std::optional<unsigned> add() {
    std::lock_guard lock(mutex_);
    if (looms_.size() == kLoomsMax) return std::nullopt;
    ++last_;
    auto loom = std::make_shared<Loom>(last_, last_ % orders_.size());
    std::shared_ptr<Loom> copy = loom;
    if (!orders_[loom->worker]->try_send(std::move(copy))) return std::nullopt;
    looms_.emplace(loom->number, loom);
    return loom->number;
  }
  // Any thread. Returns: false if there is none of that number.
  bool stop(unsigned number) {
    std::lock_guard lock(mutex_);
    auto found = looms_.find(number);
    if (found == looms_.end()) return false;
    found->second->stop.set();
    return true;
  }
  [[nodiscard]] std::string json() {
    std::lock_guard lock(mutex_);
    JsonList list;
    for (const auto& [number, loom] : looms_) {
      JsonObject one;
      one.number("number", number).number("worker", loom->worker);
      list.add(one.number("threads", loom->threads.load()).text());
    }
    return list.text();
  }

  // Those of one worker, there; until it is cancelled.
  weft::Task<void> run(std::size_t worker) {
    auto body = [&](weft::Nursery& nursery) -> weft::Task<weft::NurseryEnd> {
      while (auto order = co_await orders_[worker]->receive())
        nursery.start(work(std::move(*order)));
      co_return weft::join;
    };
    co_await weft::with_nursery(body);
  }

 private:
  struct Loom {
    Loom(unsigned which, std::size_t where)
        : number(which), worker(where), name("loom " + std::to_string(which)) {}
    const unsigned number;
    const std::size_t worker;
    const std::string name;
    weft::Event stop;
    std::atomic<std::uint64_t> threads = 0;
  };

  // [weaver]
  static weft::Task<void> weave(Loom& loom) {
    weft::Interval every(std::chrono::milliseconds(100));
    while (co_await every.tick()) ++loom.threads;
  }
  // [/weaver]

  // [loom]
  static weft::Task<void> both_sides(Loom& loom) {
    co_await weft::all_of(weft::annotate("left weaver", weave(loom)),
                          weft::annotate("right weaver", weave(loom)));
  }

  weft::Task<void> work(std::shared_ptr<Loom> loom) {
    Goodbye goodbye(*this, *loom);
    co_await weft::any_of(weft::annotate(loom->name.c_str(), both_sides(*loom)), loom->stop.wait());
  }
  // [/loom]

  // By whichever way its loom ends.
  class Goodbye {
   public:
    Goodbye(Looms& looms, Loom& loom) : looms_(looms), loom_(loom) {}
    Goodbye(const Goodbye&) = delete;
    Goodbye& operator=(const Goodbye&) = delete;
    ~Goodbye() {
      std::printf("%s is still, after %llu threads\n", loom_.name.c_str(),
                  static_cast<unsigned long long>(loom_.threads.load()));
      std::lock_guard lock(looms_.mutex_);
      looms_.looms_.erase(loom_.number);
    }

   private:
    Looms& looms_;
    Loom& loom_;
  };

  std::mutex mutex_;  // held for a moment, and never across a wait
  unsigned last_ = 0;
  std::map<unsigned, std::shared_ptr<Loom>> looms_;
  using Orders = weft::Channel<std::shared_ptr<Loom>>;
  std::vector<std::unique_ptr<Orders>> orders_;  // of each worker
};

}  // namespace showcase
