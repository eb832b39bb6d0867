// SPDX-License-Identifier: MIT
#include "weft/run/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>

#include "child.h"
#include "weft/base/assert.h"
#include "weft/core/combinators.h"
#include "weft/core/primitives.h"
#include "weft/core/try.h"
#include "weft/time/sleep.h"
#include "weft/time/timeout.h"

namespace weft::inline v0 {

namespace {

using detail::Child;

constexpr std::chrono::milliseconds kPollFirst{
    1};                                            // without pidfd: so soon, then twice as late ...
constexpr std::chrono::milliseconds kPollMax{50};  // ... up to this

std::error_code system_error_of(int error) noexcept {
  return std::error_code(error, std::system_category());
}

// --- What the child gets ------------------------------------------------------------------------

// One of its streams: what it is given, and our end.
struct Stream {
  UniqueFd theirs;  // to be made its stream; none: inherited, or null
  UniqueFd ours;
};

// A number that no standard stream has: making one of the child's must not undo another.
int above_standard(UniqueFd& fd) noexcept {
  if (fd.get() > STDERR_FILENO) return 0;
  UniqueFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy) return errno;
  fd = std::move(copy);
  return 0;
}

int make_stream(const Redirect& what, bool is_input, Stream& stream) noexcept {
  if (what.kind() == Redirect::Kind::descriptor) {
    stream.theirs = UniqueFd(::fcntl(what.number(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    return stream.theirs ? 0 : errno;
  }
  if (what.kind() != Redirect::Kind::pipe) return 0;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  stream.theirs = UniqueFd(ends[is_input ? 0 : 1]);
  stream.ours = UniqueFd(ends[is_input ? 1 : 0]);
  return above_standard(stream.theirs);
}

class SpawnPlan {
 public:
  SpawnPlan() noexcept {
    error_ = ::posix_spawn_file_actions_init(&actions_);
    if (error_) return;
    error_ = ::posix_spawnattr_init(&attributes_);
    if (error_) ::posix_spawn_file_actions_destroy(&actions_);
    made_ = error_ == 0;
  }
  ~SpawnPlan() {
    if (!made_) return;
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void add_stream(const Redirect& what, const Stream& stream, int number) noexcept {
    if (stream.theirs) {
      note(::posix_spawn_file_actions_adddup2(&actions_, stream.theirs.get(), number));
    } else if (what.kind() == Redirect::Kind::null) {
      note(::posix_spawn_file_actions_addopen(&actions_, number, "/dev/null",
                                              number == 0 ? O_RDONLY : O_WRONLY, 0));
    }
  }
  void add_rest(const ProcessOptions& options) noexcept {
    if (!options.working_directory.empty()) {
      note(::posix_spawn_file_actions_addchdir_np(&actions_, options.working_directory.c_str()));
    }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // Ours are all close-on-exec; those of other libraries may not be.
    if (!options.keep_descriptors) {
      note(::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1));
    }
#endif
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    for (int signal : options.keep_ignored) sigdelset(&all, signal);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    note(::posix_spawnattr_setsigmask(&attributes_, &none));
    note(::posix_spawnattr_setsigdefault(&attributes_, &all));
    if (options.own_group) {
      flags |= POSIX_SPAWN_SETPGROUP;
      note(::posix_spawnattr_setpgroup(&attributes_, 0));
    }
    note(::posix_spawnattr_setflags(&attributes_, flags));
  }
  // Returns: 0, or the errno.
  int spawn(pid_t& pid, const ProcessOptions& options) {
    if (error_) return error_;
    std::vector<char*> arguments = {const_cast<char*>(options.program.c_str())};
    add_all(arguments, options.arguments);
    std::vector<char*> environment;
    if (options.environment)
      add_all(environment, *options.environment);
    else
      environment.push_back(nullptr);
    return ::posix_spawnp(&pid, options.program.c_str(), &actions_, &attributes_, arguments.data(),
                          options.environment ? environment.data() : environ);
  }

 private:
  static void add_all(std::vector<char*>& to, const std::vector<std::string>& from) {
    for (const std::string& each : from) to.push_back(const_cast<char*>(each.c_str()));
    to.push_back(nullptr);
  }
  void note(int error) noexcept {
    if (!error_) error_ = error;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int error_ = 0;
  bool made_ = false;
};

// --- Waiting ------------------------------------------------------------------------------------

class OnlyWaiter {
 public:
  explicit OnlyWaiter(Child& child) : child_(child) {
    if (child.has_waiter) {
      detail::throw_usage_error(
          "one waiter at a time: another task awaits the end of this Process");
    }
    child.has_waiter = true;
  }
  ~OnlyWaiter() { child_.has_waiter = false; }
  OnlyWaiter(const OnlyWaiter&) = delete;
  OnlyWaiter& operator=(const OnlyWaiter&) = delete;

 private:
  Child& child_;
};

Task<Result<ExitStatus>> wait_for_end(Child& child) {
  OnlyWaiter waiter(child);
  co_await finish_if_cancelled();
  auto pause = kPollFirst;
  for (;;) {
    if (std::optional<Result<ExitStatus>> ended = child.try_collect()) co_return *ended;
    if (child.pidfd() >= 0) {
      Result<void> readable_now = co_await readable(child.pidfd());
      if (!readable_now) co_return std::unexpected(readable_now.error());
    } else {
      co_await sleep_for(pause);
      pause = std::min(2 * pause, kPollMax);
    }
  }
}

Task<Result<ExitStatus>> terminate_child(Child& child, std::chrono::nanoseconds grace) {
  static_cast<void>(child.kill(SIGTERM));  // one that has ended needs none
  auto ended = co_await timeout(grace, wait_for_end(child));
  if (ended) co_return *ended;
  static_cast<void>(child.kill(SIGKILL));
  co_return co_await wait_for_end(child);
}

// --- Running to the end -------------------------------------------------------------------------

Task<Result<void>> feed(Descriptor& to, const std::string& text) {
  std::span<const std::byte> left = std::as_bytes(std::span(text));
  while (!left.empty()) {
    Result<std::size_t> count = co_await to.write(left);
    // It need not read all that we have for it.
    if (!count && count.error() == std::errc::broken_pipe) break;
    if (!count) co_return std::unexpected(count.error());
    left = left.subspan(*count);
  }
  to.close();
  co_return Result<void>();
}

Task<Result<void>> drain(Descriptor& from, std::string& into, std::size_t most) {
  constexpr std::size_t kPiece = 64 << 10;  // what a pipe holds
  if (!from) co_return Result<void>();
  for (;;) {
    std::size_t used = into.size();
    into.resize(used + kPiece);
    std::span<std::byte> room = std::as_writable_bytes(std::span(into).subspan(used));
    Result<std::size_t> count = co_await from.read(room);
    into.resize(used + count.value_or(0));
    if (!count) co_return std::unexpected(count.error());
    if (*count == 0) co_return Result<void>();
    if (into.size() > most) {
      co_return std::unexpected(std::make_error_code(std::errc::file_too_large));
    }
  }
}

struct Running {
  Running(Process child, RunProcessOptions with)
      : process(std::move(child)), how(std::move(with)) {}
  Process process;
  RunProcessOptions how;
  std::string out, err;
};

Task<Result<Finished>> to_the_end(Running& run) {
  Process& process = run.process;
  // An error of one ends the others, as it does where all return a Result. Qualified: three tasks of
  // one type out of std would find std::all_of.
  auto streams = co_await weft::all_of(feed(process.in, run.how.input),
                                       drain(process.out, run.out, run.how.output_max),
                                       drain(process.err, run.err, run.how.output_max));
  if (!streams) co_return std::unexpected(streams.error());
  Result<ExitStatus> status = co_await process.wait();
  if (!status) co_return std::unexpected(status.error());
  co_return Finished(*status, std::move(run.out), std::move(run.err));
}

Task<void> clean_up(Running& run) {
  if (run.process.try_wait()) co_return;
  // Closed first: it must not wait for us while we wait for it.
  run.process.in.close();
  run.process.out.close();
  run.process.err.close();
  static_cast<void>(co_await run.process.terminate(run.how.grace));
}

}  // namespace

// --- The face -----------------------------------------------------------------------------------

std::string ExitStatus::text() const {
  if (signal_ == 0) return "exit " + std::to_string(code_);
  const char* name = ::sigdescr_np(signal_);
  return "signal " + std::to_string(signal_) + (name ? " (" + std::string(name) + ")" : "");
}

Process::Process(std::unique_ptr<Child> child) noexcept : child_(std::move(child)) {}
Process::Process(Process&& other) noexcept = default;
Process& Process::operator=(Process&& other) noexcept = default;
Process::~Process() = default;

Result<Process> Process::spawn(ProcessOptions options) {
  const Redirect* wanted[] = {&options.in, &options.out, &options.err};
  Stream streams[3];
  SpawnPlan plan;
  for (int i = 0; i < 3; ++i) {
    if (int error = make_stream(*wanted[i], i == 0, streams[i])) {
      return std::unexpected(system_error_of(error));
    }
    plan.add_stream(*wanted[i], streams[i], i);
  }
  plan.add_rest(options);
  Process made(std::make_unique<Child>());  // before there is something to lose
  pid_t pid = 0;
  if (int error = plan.spawn(pid, options)) return std::unexpected(system_error_of(error));
  made.child_->begin(pid, options);
  made.in = Descriptor(std::move(streams[0].ours));
  made.out = Descriptor(std::move(streams[1].ours));
  made.err = Descriptor(std::move(streams[2].ours));
  return made;
}

pid_t Process::id() const noexcept { return child_->id(); }
Task<Result<ExitStatus>> Process::wait() { return wait_for_end(*child_); }
std::optional<Result<ExitStatus>> Process::try_wait() noexcept { return child_->try_collect(); }
Result<void> Process::kill(int signal) noexcept { return child_->kill(signal); }
Task<Result<ExitStatus>> Process::terminate(std::chrono::nanoseconds grace) {
  return terminate_child(*child_, grace);
}

Task<Result<Finished>> run_process(ProcessOptions options, RunProcessOptions how) {
  auto unless_said = [](Redirect& redirect, Redirect then) {
    if (redirect.kind() == Redirect::Kind::automatic) redirect = std::move(then);
  };
  unless_said(options.in, how.input.empty() ? Redirect::null() : Redirect::pipe());
  unless_said(options.out, Redirect::pipe());
  unless_said(options.err, Redirect::pipe());
  Result<Process> process = Process::spawn(std::move(options));
  if (!process) co_return std::unexpected(process.error());
  Running run(std::move(*process), std::move(how));
  auto work = [&]() -> Task<Result<Finished>> { return to_the_end(run); };
  auto cleanup = [&]() -> Task<void> { return clean_up(run); };
  co_return co_await try_(work).finally(cleanup);
}

}  // namespace weft::inline v0
