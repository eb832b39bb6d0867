// SPDX-License-Identifier: MIT
#pragma once
// Processes that contend for one lock, by durable::Mutex, and count in a register under it (fenced_register.h); and who starts, stops, continues
// and kills them. What they did is in a history (lock_history.h).
//
//     if (const char* role = role_of_this_process()) return LockContender(role).run();      // for ever: it is killed in the end
//
//     Contenders all(nursery, number, options);
//     all.start_all();  co_await all.kill(3);  …
#include <fcntl.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/fenced_register.h"
#include "support/lock_history.h"
#include "support/stress.h"
#include "support/this_test.h"
#include "weft/durable/mutex.h"
#include "weft/run/process.h"
#include "weft/weft.h"

namespace weft::test {

// Of all of them; `name` and `seed` of one. As the role of a process it is one line.
struct ContenderOptions {
  std::string url;
  std::string history;
  std::chrono::milliseconds lease{1000};
  unsigned tasks = 1;
  unsigned pause_max_us = 4000;  // usually
  unsigned long_one_in = 100;    // holds it for more than a lease
  bool engine_each = false;      // each task has one, and so is a session of its own to the store
  std::string name{};
  std::uint64_t seed = 0;

  [[nodiscard]] std::string text() const {
    std::ostringstream words;
    words << url << ' ' << history << ' ' << lease.count() << ' ' << tasks << ' ' << pause_max_us
          << ' ' << long_one_in << ' ' << engine_each << ' ' << name << ' ' << seed;
    return words.str();
  }
  [[nodiscard]] static ContenderOptions parse(const std::string& text) {
    ContenderOptions options;
    std::istringstream words(text);
    std::int64_t lease = 0;
    words >> options.url >> options.history >> lease >> options.tasks >> options.pause_max_us >>
        options.long_one_in >> options.engine_each >> options.name >> options.seed;
    options.lease = std::chrono::milliseconds(lease);
    return options;
  }
};

class LockContender {
 public:
  explicit LockContender(const std::string& role)
      : options_(ContenderOptions::parse(role)), random_(options_.seed), log_(options_.history) {}

  void run() {
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      const unsigned step = options_.engine_each ? 1 : options_.tasks;
      for (unsigned first = 0; first < options_.tasks; first += step) {
        nursery.start(contend_for_ever(first, first + step));
      }
      co_return join;
    };
    auto root = [&]() -> Task<void> { co_await with_nursery(all); };
    EventLoop loop;
    weft::run(loop, root());
  }

 private:
  using LockError = durable::LockError;

  // The tasks from `first` up to `end`, by one engine.
  Task<void> contend_for_ever(unsigned first, unsigned end) {
    while (true) {
      auto body = [&](durable::Engine& engine) -> Task<void> { co_await use(engine, first, end); };
      durable::LockResult<> ended = co_await durable::with_engine(options_.url, body);
      tolerate(ended);
      co_await sleep_for(std::chrono::milliseconds(100));
    }
  }

  Task<void> use(durable::Engine& engine, unsigned first, unsigned end) {
    durable::MutexOptions wanted;
    wanted.resource_id = "register";
    wanted.lease = options_.lease;
    wanted.acquire_timeout = options_.lease * 10;
    wanted.idle_timeout = options_.lease;
    wanted.fair_bound = 3;
    wanted.owner = options_.name;
    durable::LockResult<durable::Mutex> lock = co_await durable::Mutex::open(engine, wanted);
    if (!tolerate(lock)) co_return;
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (unsigned i = first; i < end; ++i) nursery.start(contend(*lock, i));
      co_return join;
    };
    co_await with_nursery(all);
  }

  Task<void> contend(durable::Mutex& lock, unsigned number) {
    const std::string who = options_.name + "." + std::to_string(number);
    Random random = random_.split();
    while (true) {
      Hold hold{who, boot_now(), 0, 0, random.below(options_.pause_max_us + 1), false};
      // Longer than its lease: it is renewed, or lost.
      if (random.one_in(options_.long_one_in)) {
        hold.pause_us = static_cast<unsigned>(options_.lease.count()) * 1000 / 2 * 3;
        hold.is_long = true;
      }
      if (random.one_in(50)) hold.throws = true;
      auto section = [&](durable::LockContext& held) { return count(hold, held); };
      auto attempt = [&]() -> Task<void> {
        if (random.one_in(20)) co_return note(hold, co_await lock.try_acquire(section));
        co_return note(hold, co_await lock.on_acquire(section));
      };
      auto impatient = [&]() -> Task<void> {
        auto patience = options_.lease / 2 * random.below(4);
        static_cast<void>(co_await timeout(patience, attempt()));
      };
      auto caught = [](std::exception_ptr error) -> Task<void> {
        try {
          std::rethrow_exception(error);
        } catch (const Thrown&) {  // and the lock is given back
        }
        co_return;
      };
      const bool leaves = random.one_in(10);
      auto one = [&]() -> Task<void> {
        if (leaves) return impatient();
        return attempt();
      };
      co_await try_(one).catch_(caught);
      co_await sleep_for(std::chrono::microseconds(random.below(3000)));
    }
  }

  struct Thrown {};
  struct Hold {
    std::string who;
    std::int64_t asked;
    std::uint64_t token;  // 0: it was not acquired
    std::int64_t ended;
    unsigned pause_us;
    bool is_long;
    bool throws = false;
  };

  // Reads, dawdles, and writes: others come between if the lock does not hold, and the gate must see it. Who has lost it writes all the
  // same.
  Task<void> count(Hold& hold, durable::LockContext& held) {
    hold.token = held.fencing_token();
    log_.add({.what = LockEvent::hold,
              .who = hold.who,
              .token = hold.token,
              .begin = hold.asked,
              .end = boot_now()});
    note_if_sure(hold, held);
    std::optional<std::uint64_t> value = register_.read(hold.who, hold.token);
    bool wrote = false;
    auto write = [&]() {
      if (!value) return;
      wrote = true;
      note_if_sure(hold, held);
      if (register_.write(hold.who, hold.token, *value + 1)) add(LockEvent::done, hold, *value + 1);
      note_if_sure(hold, held);
    };
    auto work = [&]() -> Task<void> {
      co_await sleep_for(std::chrono::microseconds(hold.pause_us));
      if (hold.throws) throw Thrown();
      write();
    };
    auto late = [&]() -> Task<void> {
      if (!wrote && held.is_lost()) write();
      co_return;
    };
    co_await try_(work).finally(late);
    hold.ended = boot_now();
  }
  void note_if_sure(const Hold& hold, const durable::LockContext& held) {
    std::int64_t before = boot_now();
    if (held.lease_left() <= std::chrono::nanoseconds(0)) return;
    log_.add({.what = LockEvent::sure,
              .who = hold.who,
              .token = hold.token,
              .begin = before,
              .end = before});
  }
  void add(LockEvent::What what, const Hold& hold, std::uint64_t value = 0) {
    log_.add({.what = what,
              .who = hold.who,
              .token = hold.token,
              .begin = hold.asked,
              .end = hold.ended,
              .value = value});
  }
  void note(const Hold& hold, const durable::LockResult<>& result) {
    tolerate(result);
    if (result && hold.ended > 0) add(LockEvent::left, hold);
    if (!result && result.error() == LockError::lost) add(LockEvent::lost, hold);
  }
  // What the world may say. All else is a mistake, and ends the process. Returns: whether it is no error.
  template <class T>
  bool tolerate(const durable::LockResult<T>& result) {
    if (result) return true;
    switch (result.error().kind()) {
      case LockError::timeout:
      case LockError::busy:
      case LockError::unreachable:
      case LockError::lost:
        return false;
      default:
        std::fprintf(stderr, "contender %s: %s\n", options_.name.c_str(), result.error().what());
        std::fflush(stderr);
        ::_exit(kMistake);
    }
  }
  static constexpr int kMistake = 7;

  ContenderOptions options_;
  Random random_;
  HistoryLog log_;
  RegisterClient register_{STDIN_FILENO};
};

class Contenders {
 public:
  // start_as: makes of the options of a process those of one that is started elsewhere.
  using StartAs = std::function<void(ProcessOptions&, std::size_t place)>;

  Contenders(Nursery& nursery, FencedRegister& number, ContenderOptions options, Random random,
             StartAs start_as = {})
      : nursery_(nursery),
        number_(number),
        options_(std::move(options)),
        random_(random),
        start_as_(std::move(start_as)) {}

  void start(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) processes_.push_back(another(i));
  }
  [[nodiscard]] std::size_t size() const noexcept { return processes_.size(); }
  [[nodiscard]] std::size_t any() { return random_.below(static_cast<unsigned>(size())); }

  // SIGKILL; another takes its place.
  Task<void> replace(std::size_t which) {
    static_cast<void>(processes_[which]->process.kill(SIGKILL));
    static_cast<void>(co_await processes_[which]->process.wait());
    processes_[which] = another(which);
    ++kills;
  }
  Task<void> pause(std::size_t which, std::chrono::nanoseconds how_long) {
    static_cast<void>(processes_[which]->process.kill(SIGSTOP));
    co_await sleep_for(how_long);
    static_cast<void>(processes_[which]->process.kill(SIGCONT));
    ++pauses;
  }
  // None has ended by itself.
  [[nodiscard]] bool all_alive() {
    for (auto& each : processes_) {
      std::optional<Result<ExitStatus>> ended = each->process.try_wait();
      if (!ended) continue;
      ADD_FAILURE() << each->name << " ended by itself: " << or_throw(*ended).text();
      return false;
    }
    return true;
  }
  // Each of them has counted once more. Returns: false if that does not come to pass.
  Task<bool> all_get_through(std::chrono::nanoseconds within) {
    std::vector<std::uint64_t> before;
    for (auto& each : processes_) before.push_back(number_.updates_of(each->name));
    auto look = [&]() -> Task<void> {
      for (std::size_t i = 0; i < processes_.size();) {
        if (!all_alive()) co_return;
        if (number_.updates_of(processes_[i]->name) > before[i]) {
          ++i;
        } else {
          co_await sleep_for(std::chrono::milliseconds(10));
        }
      }
    };
    auto in_time = co_await timeout(within, look());
    co_return in_time.has_value();
  }
  Task<void> end_all() {
    for (auto& each : processes_) {
      static_cast<void>(each->process.kill(SIGKILL));
      static_cast<void>(co_await each->process.wait());
    }
    processes_.clear();
  }

  std::size_t kills = 0, pauses = 0;

 private:
  struct One {
    std::string name;
    Process process;
  };

  std::unique_ptr<One> another(std::size_t place) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("socketpair");
    UniqueFd ours(ends[0]), theirs(ends[1]);
    ContenderOptions own = options_;
    own.name = "p" + std::to_string(++started_);
    own.seed = random_.next();
    ProcessOptions options = this_test_as(own.text());
    options.in = Redirect::to(std::move(theirs));
    if (start_as_) start_as_(options, place);
    auto made = std::make_unique<One>(own.name, or_throw(Process::spawn(std::move(options))));
    nursery_.start(number_.serve(Descriptor(std::move(ours))));
    return made;
  }

  Nursery& nursery_;
  FencedRegister& number_;
  ContenderOptions options_;
  Random random_;
  StartAs start_as_;
  std::vector<std::unique_ptr<One>> processes_;
  std::size_t started_ = 0;
};

// A seed that is printed; no dog, which would bark in the contenders.
class Torture : public ::testing::Test {
 protected:
  Torture() : seed_(choose_seed()) {
    if (role_of_this_process()) return;
    std::printf("[   SEED   ] WEFT_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    std::fflush(stdout);
  }
  [[nodiscard]] Random random(std::uint64_t stream) const { return Random(seed_ ^ (stream << 48)); }

 private:
  static std::uint64_t choose_seed() {
    if (const char* given = std::getenv("WEFT_SEED")) return std::strtoull(given, nullptr, 10);
    return std::random_device{}() | 1u;
  }
  std::uint64_t seed_;
};

// WEFT_STRESS_SECONDS, if it is said.
inline std::chrono::seconds torture_time(std::chrono::seconds usual) {
  const char* given = std::getenv("WEFT_STRESS_SECONDS");
  return given ? std::chrono::seconds(std::strtoul(given, nullptr, 10)) : usual;
}

inline void expect_right(const HistoryCheck& check) {
  for (const std::string& each : check.violations) ADD_FAILURE() << each;
  std::printf(
      "[ HISTORY  ] %zu acquisitions, %llu updates, %zu lost, %zu refused, %zu violations\n",
      check.holds, static_cast<unsigned long long>(check.updates), check.losses, check.refusals,
      check.violations.size());
}

}  // namespace weft::test
