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
#include <cstdio>
#include <cstdlib>
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
using durable::LockResult;

// When a lease that could not be renewed is given up, an eighth of it is left (docs/design/durable_mutex.md, "Time"). When it
// has ended, another one may run: the command is gone by then. Half of that, so that KILL has time to be carried out.
constexpr int kGracePart = 16;

// Who interrupts us while the lock is given back, after the command, waits so long for the engine.
constexpr std::chrono::seconds kPatience{1};

constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

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
  line.option('t', "timeout", "wait for the lock at most so long",
              duration("TIME", settings.timeout));
  line.option(0, "try", "do not wait for others at all", flag(settings.only_if_free));
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
  line.note("Without --engine and $WEFT_LOCK_ENGINE: $XDG_RUNTIME_DIR/weft/locks.db, or");
  line.note("/tmp/weft-UID/locks.db. That is for one user, and gone after a reboot, so that");
  line.note("tokens begin anew. cron has no XDG_RUNTIME_DIR: name the engine there.");
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
  if (settings.owner) return *settings.owner;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  const std::string& program = settings.command.front();
  return std::string(host.data()) + " weft[" + std::to_string(::getpid()) +
         "]: " + program.substr(program.rfind('/') + 1);
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
        command_(settings.command, settings.lease / kGracePart) {}

  // Returns: the exit code. Throws: BadUsage, Failure.
  Task<int> run() {
    std::vector<SignalSet> signals;
    for (int each : kPassedOn) {
      if (!is_ignored(each)) signals.push_back(SignalSet({each}));
    }
    int code = kDone;
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (SignalSet& each : signals) nursery.start(hear(each));
      auto [ended, stopped] = co_await any_of(work(), interrupted_.wait());
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
      if (command_.is_over()) co_await leave_after_patience(signal);
      signal_ = signal;
      interrupted_.set();
    }
  }

  // The release is shielded, and an engine that is gone is asked for as long as the lease.
  [[noreturn]] static void leave_it(int signal) {
    std::fputs("weft lock: the engine does not answer: the lock is free when its lease has ended\n",
               stderr);
    std::_Exit(128 + signal);
  }
  static Task<void> leave_after_patience(int signal) {
    co_await sleep_for(kPatience);
    leave_it(signal);
  }

  Task<int> work() {
    auto body = [this](durable::Engine& engine) -> Task<LockResult<int>> { return hold(engine); };
    LockResult<LockResult<int>> done = co_await durable::with_engine(engine_, body);
    if (!done) fail(done.error(), settings_.name);
    if (!*done) fail(done->error(), settings_.name);
    co_return **done;
  }

  Task<LockResult<int>> hold(durable::Engine& engine) {
    durable::MutexOptions options{.resource_id = settings_.name,
                                  .lease = settings_.lease,
                                  .acquire_timeout = settings_.timeout,
                                  .max_hold = durable::MutexOptions::kNever,
                                  .fair_bound = 1,  // nobody here to pass it on to
                                  .owner = owner_of(settings_)};
    LockResult<durable::Mutex> lock = co_await durable::Mutex::open(engine, std::move(options));
    if (!lock) co_return std::unexpected(lock.error());
    auto section = [this](LockContext& held) -> Task<int> { return run_under(held); };
    if (settings_.shared && settings_.only_if_free)
      co_return co_await lock->try_acquire_shared(section);
    if (settings_.shared) co_return co_await lock->on_acquire_shared(section);
    if (settings_.only_if_free) co_return co_await lock->try_acquire(section);
    co_return co_await lock->on_acquire(section);
  }

  Task<int> run_under(LockContext& held) {
    std::vector<std::string> added = {"WEFT_LOCK_NAME=" + settings_.name,
                                      "WEFT_FENCING_TOKEN=" + std::to_string(held.fencing_token())};
    ExitStatus status = co_await command_.run(std::move(added));
    co_return status.signal() ? 128 + status.signal() : status.code();
  }

  const Settings& settings_;
  std::string engine_;
  HeldCommand command_;
  Event interrupted_{"a signal"};
  int signal_ = 0;
};

}  // namespace

int lock(const Command& self, Words words) {
  if (!words.empty()) {
    if (words[0] == "ls") return list_locks(words.subspan(1));
    if (words[0] == "show") return show_lock(words.subspan(1));
    if (words[0] == "revoke") return revoke_lock(words.subspan(1));
  }
  Settings settings;
  CommandLine line = line_for(self, settings);
  if (!line.read(words)) {
    std::fputs(line.help().c_str(), stdout);
    return kDone;
  }
  Session session(settings, lock_engine(settings.engine));
  EventLoop loop;
  return weft::run(loop, session.run());
}

}  // namespace weft::tool
