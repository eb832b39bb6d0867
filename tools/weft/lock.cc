// SPDX-License-Identifier: MIT
// weft lock: a command that runs while a lock between processes is held.
//
// The command is stopped when the lock is lost; a signal is passed on to it, or ends the wait for the lock. Whatever happens, the
// lock is given back. Only kill -9 of weft lock itself leaves the command running, and the lock to the end of its lease.
#include "lock.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "held_command.h"
#include "weft/core/combinators.h"
#include "weft/core/nursery.h"
#include "weft/durable/engine.h"
#include "weft/durable/mutex.h"
#include "weft/run/event_loop.h"
#include "weft/run/signals.h"
#include "weft/sync/event.h"
#include "weft/time/sleep.h"

namespace weft::tool {
namespace {

using durable::LockContext;
using durable::LockError;
using durable::LockResult;

// When a lease that could not be renewed is given up, an eighth of it is left (docs/design/durable_mutex.md, "Time"). When it
// has ended, another one may run: the command is gone by then. Half of that, so that KILL has time to be carried out.
constexpr int kGracePart = 16;

// Who interrupts us while no command runs waits so long for an engine that does not take back what we have, or have asked for.
constexpr std::chrono::seconds kPatience{1};

// --try waits for nobody, but an engine needs some time to answer.
constexpr std::chrono::milliseconds kTryTime = std::chrono::seconds(2);

// When it is known that there will be no lock, the engine has so long to hear that we do not want it any more. Then its lease,
// or our end, says so.
constexpr std::chrono::milliseconds kLeaveTime{250};

constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

struct Part {
  std::string_view name;
  int (*run)(Words words);
};
constexpr std::array kParts = {Part{"ls", list_locks}, Part{"show", show_lock},
                               Part{"revoke", revoke_lock}};

struct Settings {
  std::string name;
  std::vector<std::string> command;
  std::optional<std::string> engine;
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::chrono::milliseconds lease = std::chrono::seconds(15);
  bool only_if_free = false;
  bool shared = false;
  std::optional<std::string> owner;
};

CommandLine line_for(const Command& self, Settings& settings) {
  CommandLine line("weft " + std::string(self.name), std::string(self.summary));
  line.operand("of the lock: anything, the same for all who are to exclude each other",
               text("NAME", settings.name));
  line.command("the program and its arguments", texts("COMMAND...", settings.command));
  line.option(0, "engine", lock_engine_help(), text("URL", settings.engine));
  line.option('t', "timeout", "wait for the engine and the lock at most so long",
              duration("TIME", settings.timeout));
  line.option(0, "try",
              "do not wait for others at all; for the engine " + to_string(kTryTime) + " at most",
              flag(settings.only_if_free));
  line.option('s', "shared", "together with others that say so", flag(settings.shared));
  line.option(0, "lease", "how long others wait if this machine or weft lock dies",
              duration("TIME", settings.lease));
  line.option(0, "owner", "what weft lock show calls us (host, process and program)",
              text("TEXT", settings.owner));
  line.note("COMMAND finds in its environment WEFT_LOCK_NAME and WEFT_FENCING_TOKEN, a number");
  line.note("that is greater with each holder. Let what it writes to refuse smaller ones:");
  line.note("a lock that nobody checks is advice.");
  line.note("");
  line.note("If the lock is lost, COMMAND gets TERM, and KILL after a sixteenth of the lease.");
  line.note("HUP, INT, QUIT and TERM are passed on to COMMAND. kill -9 of weft lock is not:");
  line.note("COMMAND goes on then, and the lock is free when its lease has ended.");
  line.note("");
  line.note("Without --engine and $WEFT_LOCK_ENGINE: $XDG_STATE_HOME/weft/locks.db, or");
  line.note("~/.local/state/weft/locks.db: one file for all that this user runs on this");
  line.note("machine. Who has no home gets $XDG_RUNTIME_DIR/weft/locks.db, or one below /tmp,");
  line.note("where tokens begin anew after a boot: name the engine there. Whoever removes the");
  line.note("file ends every lock in it, and begins the tokens anew.");
  line.note("");
  line.note("Ends as COMMAND does, with 128 + N if signal N ended that; and by itself with");
  line.note("120: held by others (--try)         124: not acquired within --timeout");
  line.note("121: the lock was lost, or revoked  125: asked in the wrong way");
  line.note("123: the engine does not answer,    126: COMMAND cannot be run");
  line.note("     or cannot write                127: there is no COMMAND");
  line.note("");
  line.note("weft lock ls, weft lock show NAME, weft lock revoke NAME: see their --help.");
  line.note("A lock of such a name: weft lock -- ls -- COMMAND.");
  return line;
}

std::string owner_of(const Settings& settings) {
  if (settings.owner) {
    if (durable::as_owner(*settings.owner) == *settings.owner) return *settings.owner;
    throw BadUsage("weft lock: --owner: " + std::to_string(durable::MutexOptions::kOwnerBytesMax) +
                   " bytes at most, and no control characters");
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  const std::string& program = settings.command.front();
  return durable::as_owner(std::string(host.data()) + " weft[" + std::to_string(::getpid()) +
                           "]: " + program.substr(program.rfind('/') + 1));
}

// nohup(1) and shells say by it what is not meant for us.
bool is_ignored(int signal) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

class Session {
 public:
  Session(const Settings& settings, std::string engine)
      : settings_(settings),
        engine_(std::move(engine)),
        time_(settings.only_if_free ? std::min(settings.timeout, kTryTime) : settings.timeout),
        command_(settings.command, settings.lease / kGracePart) {}

  // Returns: the exit code. Throws: BadUsage, Failure.
  Task<int> run() {
    deadline_ = now() + time_;
    std::vector<SignalSet> signals;
    for (int each : kPassedOn) {
      if (!is_ignored(each)) signals.push_back(SignalSet({each}));
    }
    int code = kDone;
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (SignalSet& each : signals) nursery.start(hear(each));
      nursery.start(mind_the_time());
      auto [ended, stopped, late] = co_await any_of(work(), interrupted_.wait(), too_late_.wait());
      if (!ended && !stopped) fail(*refused_, settings_.name);
      code = ended ? *ended : 128 + signal_;
      co_return cancel;
    };
    co_await with_nursery(all);
    co_return code;
  }

 private:
  Task<void> hear(SignalSet& signals) {
    for (;;) {
      int signal = co_await signals.next();
      if (command_.pass(signal)) continue;
      if (!command_.is_over()) {
        signal_ = signal;
        interrupted_.set();
      }
      co_await sleep_for(kPatience);
      if (!has_begun_ || command_.is_over()) leave_it(signal);
    }
  }

  // The release is shielded, and an engine that is gone is asked for as long as the lease.
  [[noreturn]] static void leave_it(int signal) {
    std::fputs("weft lock: the engine does not answer: the lock is free when its lease has ended\n",
               stderr);
    std::_Exit(128 + signal);
  }

  // The time is for all of it: until the engine is open, and until the lock is ours or not. Of the latter the library knows more
  // to tell, so it has the first word.
  Task<void> mind_the_time() {
    co_await any_of(sleep_until(deadline_), opened_.wait());
    if (opened_.is_set()) co_await any_of(sleep_until(deadline_ + kLeaveTime), answered_.wait());
    if (has_begun_) co_return;
    if (!refused_) refused_ = opened_.is_set() ? in_our_words(not_in_time()) : no_answer();
    too_late_.set();
    co_await sleep_for(kLeaveTime);
    // It may have begun in the very last moment: then it is stopped in its own time, and nobody leaves it alone.
    if (!has_begun_) leave_refused();
  }

  // Neither the end of a file that is locked nor the last word with etcd is waited for any longer.
  [[noreturn]] void leave_refused() const {
    int code = kNoEngine;
    try {
      fail(*refused_, settings_.name);
    } catch (const BadUsage& error) {
      std::fprintf(stderr, "%s\n", error.what());
      code = kBadLockUsage;
    } catch (const Failure& error) {
      std::fprintf(stderr, "weft lock: %s\n", error.what());
      code = error.code();
    }
    std::_Exit(code);
  }

  [[nodiscard]] LockError no_answer() const {
    std::string what = "the engine did not answer within " + to_string(time_);
    what += settings_.only_if_free ? ": it is not known who has the lock"
                                   : ": see that it is there; --timeout gives it more";
    return LockError(LockError::unreachable, what);
  }
  // In the words of who asked: the library was given what was left of the time.
  [[nodiscard]] LockError in_our_words(const LockError& error) const {
    if (error != LockError::timeout) return error;
    return settings_.only_if_free ? no_answer() : not_in_time();
  }
  [[nodiscard]] LockError not_in_time() const {
    return LockError(LockError::timeout,
                     "'" + settings_.name + "' was not acquired within " + to_string(time_));
  }

  Task<int> work() {
    auto body = [this](durable::Engine& engine) -> Task<LockResult<int>> { return use(engine); };
    LockResult<LockResult<int>> done = co_await durable::with_engine(engine_, body);
    if (!done) fail(done.error(), settings_.name);
    if (!*done) fail(done->error(), settings_.name);
    co_return **done;
  }

  Task<LockResult<int>> use(durable::Engine& engine) {
    LockResult<int> done = co_await hold(engine);
    if (!done) done = std::unexpected(in_our_words(done.error()));
    if (!done && !has_begun_) {
      refused_ = done.error();
      opened_.set();
      answered_.set();
    }
    co_return done;
  }

  [[nodiscard]] std::chrono::nanoseconds time_left() const {
    return std::max<std::chrono::nanoseconds>(deadline_ - now(), std::chrono::milliseconds(1));
  }

  Task<LockResult<int>> hold(durable::Engine& engine) {
    durable::MutexOptions options{.resource_id = settings_.name,
                                  .lease = settings_.lease,
                                  .acquire_timeout = time_left(),
                                  .max_hold = durable::MutexOptions::kNever,
                                  .fair_bound = 1,  // nobody here to pass it on to
                                  .owner = owner_of(settings_)};
    LockResult<durable::Mutex> lock = co_await durable::Mutex::open(engine, std::move(options));
    // It had what was left of the time, and says so; who asked knows of the whole.
    bool in_vain = !lock && lock.error() == LockError::unreachable && now() >= deadline_;
    if (in_vain) co_return std::unexpected(no_answer());
    if (!lock) co_return std::unexpected(lock.error());
    opened_.set();
    auto section = [this](LockContext& held) -> Task<int> { return run_under(held); };
    if (settings_.shared && settings_.only_if_free)
      co_return co_await lock->try_acquire_shared(section);
    if (settings_.shared) co_return co_await lock->on_acquire_shared_within(time_left(), section);
    if (settings_.only_if_free) co_return co_await lock->try_acquire(section);
    co_return co_await lock->on_acquire_within(time_left(), section);
  }

  Task<int> run_under(LockContext& held) {
    has_begun_ = true;
    answered_.set();
    std::vector<std::string> added = {"WEFT_LOCK_NAME=" + settings_.name,
                                      "WEFT_FENCING_TOKEN=" + std::to_string(held.fencing_token())};
    ExitStatus status = co_await command_.run(std::move(added));
    co_return status.signal() ? 128 + status.signal() : status.code();
  }

  const Settings& settings_;
  std::string engine_;
  std::chrono::milliseconds time_;  // for all that comes before the command
  TimePoint deadline_;
  HeldCommand command_;
  bool has_begun_ = false;  // the command
  Event interrupted_{"a signal"};
  Event opened_{"a lock engine being opened"};
  Event answered_{"a lock, or why there is none"};
  Event too_late_{"the end of --timeout"};
  std::optional<LockError> refused_;  // why there is none
  int signal_ = 0;
};

// weft lock ls, show, revoke, with options before the word or behind it: weft lock --engine URL ls. Which options there are is
// for each of them to say. Behind an option a name may be theirs, too, if a command follows: then it is a lock's.
// Returns: nothing if it is none of them.
std::optional<int> run_part(const CommandLine& line, Words words) {
  std::size_t at = line.first_operand(words);
  if (at == words.size()) return std::nullopt;
  auto found = std::ranges::find(kParts, words[at], &Part::name);
  if (found == kParts.end()) return std::nullopt;
  if (at > 0 && std::ranges::find(words, "--") != words.end()) return std::nullopt;
  std::vector<std::string_view> rest(words.begin(), words.end());
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  return found->run(rest);
}

}  // namespace

int lock(const Command& self, Words words) {
  Settings settings;
  CommandLine line = line_for(self, settings);
  if (std::optional<int> code = run_part(line, words)) return *code;
  if (!line.read(words)) {
    std::fputs(line.help().c_str(), stdout);
    return kDone;
  }
  Session session(settings, lock_engine(settings.engine));
  EventLoop loop;
  return weft::run(loop, session.run());
}

}  // namespace weft::tool
