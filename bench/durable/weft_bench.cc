// SPDX-License-Identifier: MIT
// weft in suite durable. `--sqlite`, `--etcd`: tasks of one process; `--sqlite_processes`, `--etcd_processes`: the hand-over between
// processes, each of which is this program as `--worker URL COUNT`.
#include <weft/durable/mutex.h>
#include <weft/weft.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "durable/lock_bench.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

using durable::LockContext;
using durable::MutexOptions;

constexpr std::size_t kTasks = 8;
constexpr std::size_t kProcesses = 4;

MutexOptions options() {
  MutexOptions options;
  options.resource_id = "bench";
  options.acquire_timeout = std::chrono::minutes(5);
  return options;
}

Task<void> nothing(LockContext&) { co_return; }

// Runs body(mutex) on an engine of this URL.
template <class Body>
void with_mutex(const std::string& url, Body body) {
  auto inside = [&](durable::Engine& engine) -> Task<void> {
    durable::Mutex mutex = or_throw(co_await durable::Mutex::open(engine, options()));
    co_await body(mutex);
  };
  auto root = [&]() -> Task<void> { or_throw(co_await durable::with_engine(url, inside)); };
  EventLoop loop;
  run(loop, root());
}

// The engines that the measures run on, made when they are first needed.
class Place {
 public:
  static const std::string& url() {
    static Place place;
    return place.url_;
  }
  static inline bool etcd = false;

 private:
  Place() {
    if (etcd) {
      server_.emplace();
      url_ = "etcd://127.0.0.1:" + std::to_string(server_->port()) + "/bench";
    } else {
      scratch_.emplace();
      url_ = "sqlite://" + scratch_->path() + "/locks.db";
    }
  }
  std::optional<Scratch> scratch_;
  std::optional<EtcdServer> server_;
  std::string url_;
};

std::string pair(std::size_t n) {
  std::string answer;
  auto body = [&](durable::Mutex& mutex) -> Task<void> {
    Stopwatch watch;
    for (std::size_t i = 0; i < n; ++i) or_throw(co_await mutex.on_acquire(nothing));
    answer = watch.per_operation(n);
  };
  with_mutex(Place::url(), body);
  return answer;
}

std::string pair_p99(std::size_t n) {
  std::vector<double> samples;
  auto body = [&](durable::Mutex& mutex) -> Task<void> {
    for (std::size_t i = 0; i < n; ++i) {
      auto start = std::chrono::steady_clock::now();
      or_throw(co_await mutex.on_acquire(nothing));
      samples.push_back(
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
              .count());
    }
  };
  with_mutex(Place::url(), body);
  return percentile(samples, 0.99);
}

std::string handover_tasks(std::size_t n) {
  std::string answer;
  auto body = [&](durable::Mutex& mutex) -> Task<void> {
    auto one = [&]() -> Task<void> {
      for (std::size_t i = 0; i < n / kTasks; ++i) or_throw(co_await mutex.on_acquire(nothing));
    };
    Stopwatch watch;
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (std::size_t i = 0; i < kTasks; ++i) nursery.start(one);
      co_return join;
    };
    co_await with_nursery(all);
    answer = watch.per_operation(n / kTasks * kTasks);
  };
  with_mutex(Place::url(), body);
  return answer;
}

// The workers queue behind us; then they have it to themselves.
std::string handover_processes(std::size_t n) {
  std::size_t each = n / kProcesses;
  double taken = 0;
  auto body = [&](durable::Mutex& mutex) -> Task<void> {
    Event begin;
    auto hold = [&](LockContext&) -> Task<void> { co_await begin.wait(); };
    auto time = [&]() -> Task<void> {
      co_await sleep_for(std::chrono::milliseconds(20));
      auto work = [&] {
        std::vector<std::string> command{"/proc/self/exe", "--worker", Place::url(),
                                         std::to_string(each)};
        auto release = [](void* event) { static_cast<Event*>(event)->set(); };
        taken = time_workers(command, kProcesses, release, &begin);
      };
      co_await blocking(work);
    };
    co_await all_of(mutex.on_acquire(hold), time());
  };
  with_mutex(Place::url(), body);
  return wall_only(taken / static_cast<double>(each * kProcesses));
}

int work(const char* url, std::size_t count) {
  auto body = [&](durable::Mutex& mutex) -> Task<void> {
    say_ready();
    for (std::size_t i = 0; i < count; ++i) or_throw(co_await mutex.on_acquire(nothing));
  };
  with_mutex(url, body);
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--worker" && argc == 4) return work(argv[2], std::strtoul(argv[3], nullptr, 10));
  Place::etcd = mode.starts_with("--etcd");
  constexpr Measure kTaskMeasures[] = {
      {"pair", pair}, {"pair_p99", pair_p99}, {"handover", handover_tasks}};
  constexpr Measure kProcessMeasures[] = {{"handover", handover_processes}};
  const char* info = Place::etcd ? "weft::durable::Mutex on etcd, default options"
                                 : "weft::durable::Mutex on SQLite, default options";
  if (mode.ends_with("_processes")) return serve(info, kProcessMeasures);
  return serve(info, kTaskMeasures);
}
