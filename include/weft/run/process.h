// SPDX-License-Identifier: MIT
#pragma once
// weft::Process, run_process: child processes whose end is awaited.
//
//     ProcessOptions list("ls", {"-l"});
//     Result<Finished> done = co_await run_process(std::move(list));       // collects its output
//
//     ProcessOptions sorting("sort");
//     sorting.in = Redirect::pipe();
//     Process sort = or_throw(Process::spawn(std::move(sorting)));
//     co_await sort.in.write(bytes);
//     sort.in.close();                                                     // its end of input
//     Result<ExitStatus> status = co_await sort.wait();
//
// A child starts with nothing of this process's but what it was given: its three standard streams,
// no other descriptor, no blocked signal, no ignored one, unless the options say so.
//
// Who ends it     run_process() ends it when cancelled: SIGTERM, a grace period, SIGKILL. wait() does
//                 not. A Process that is dropped before its end was waited for is killed at once,
//                 and a thread of weft's own collects it: no zombie stays. For a polite end say
//                 co_await p.terminate().
//
// Threads         spawn(): any thread; it blocks until the child has begun, about a millisecond.
//                 wait(), terminate(): a loop with I/O, one waiter at a time (UsageError). The pipes
//                 are Descriptors, and belong to one loop each. Dropping: any thread.
// Cancellation    wait() is a cancel point on every call and leaves the child as it is; so is
//                 terminate(), between its signals. run_process(): returns when the child is gone.
// Resumption      on the waiter's home loop.
// Errors          as Result: what posix_spawn(3) says, a program that is not there included;
//                 std::errc::no_child_process if somebody else has collected the child, or SIGCHLD
//                 is ignored in this process.
// Allocation      one block per child, frames, and output.
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/unique_fd.h"
#include "weft/core/task.h"
#include "weft/io/descriptor.h"

namespace weft::inline v0 {

// What one of a child's standard streams is. As it comes: inherited by spawn(); with run_process()
// the input is what that is given, and the rest is collected.
class Redirect {
 public:
  enum class Kind : std::uint8_t { automatic, inherit, null, pipe, descriptor };
  Redirect() noexcept = default;
  [[nodiscard]] static Redirect inherit() noexcept { return Redirect(Kind::inherit); }
  [[nodiscard]] static Redirect null() noexcept { return Redirect(Kind::null); }
  [[nodiscard]] static Redirect pipe() noexcept { return Redirect(Kind::pipe); }
  // A file, or the end of somebody's pipe; closed here when the child has it.
  [[nodiscard]] static Redirect to(UniqueFd fd) noexcept {
    Redirect made(Kind::descriptor);
    made.fd_ = std::move(fd);
    return made;
  }
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] int number() const noexcept { return fd_.get(); }

 private:
  explicit Redirect(Kind kind) noexcept : kind_(kind) {}
  Kind kind_ = Kind::automatic;
  UniqueFd fd_;
};

// With a constructor of its own, and so safe in a co_await expression on g++ 12, too.
struct ProcessOptions {
  ProcessOptions(std::string what, std::vector<std::string> with = {})
      : program(std::move(what)), arguments(std::move(with)) {}

  std::string program;                 // a path, if there is a slash in it; else found by PATH
  std::vector<std::string> arguments;  // after the program's own name
  std::optional<std::vector<std::string>> environment;  // "NAME=value" each; none: this process's
  std::string working_directory;  // empty: this process's. A relative `program` starts there
  Redirect in, out, err;
  // A process group of its own: Ctrl-C at the terminal does not reach it, and kill() and
  // everything that ends it reaches those that it has started, too.
  bool own_group = false;
  // For a program that stands for another one: descriptors of this process that are not
  // close-on-exec are the child's too, and so are, of these signals, those that are ignored here.
  bool keep_descriptors = false;
  std::vector<int> keep_ignored;
  bool use_pidfd = true;  // false: as on a kernel before 5.3: its end is polled for
};

class ExitStatus {
 public:
  [[nodiscard]] static ExitStatus exited(int code) noexcept { return ExitStatus(code, 0); }
  [[nodiscard]] static ExitStatus killed(int signal) noexcept { return ExitStatus(-1, signal); }

  [[nodiscard]] bool success() const noexcept { return code_ == 0; }
  // Returns: -1 if a signal has ended it.
  [[nodiscard]] int code() const noexcept { return code_; }
  // Returns: 0 if it has ended by itself.
  [[nodiscard]] int signal() const noexcept { return signal_; }
  // "exit 3", "signal 9 (Killed)"
  [[nodiscard]] std::string text() const;
  friend bool operator==(ExitStatus, ExitStatus) noexcept = default;

 private:
  ExitStatus(int code, int signal) noexcept : code_(code), signal_(signal) {}
  int code_;
  int signal_;
};

namespace detail {
class Child;
}

class [[nodiscard]] Process {
 public:
  static constexpr std::chrono::milliseconds kGrace = std::chrono::seconds(5);

  [[nodiscard]] static Result<Process> spawn(ProcessOptions options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  // Requires: nobody waits for it.
  ~Process();

  // Our ends of its pipes; empty where there is none.
  Descriptor in, out, err;

  [[nodiscard]] pid_t id() const noexcept;
  // Its end. Again after that: the same answer. Cancel: the child goes on.
  [[nodiscard]] Task<Result<ExitStatus>> wait();
  // The same without waiting; nothing if it runs.
  [[nodiscard]] std::optional<Result<ExitStatus>> try_wait() noexcept;
  // std::errc::no_such_process if its end is known.
  Result<void> kill(int signal) noexcept;
  // SIGTERM, then, if it does not end within `grace`, SIGKILL; and its end.
  [[nodiscard]] Task<Result<ExitStatus>> terminate(std::chrono::nanoseconds grace = kGrace);

 private:
  explicit Process(std::unique_ptr<detail::Child> child) noexcept;
  std::unique_ptr<detail::Child> child_;
};

struct Finished {
  Finished(ExitStatus how, std::string said, std::string complained)
      : status(how), out(std::move(said)), err(std::move(complained)) {}
  ExitStatus status;
  std::string out, err;  // empty where it was sent elsewhere
};

struct RunProcessOptions {
  RunProcessOptions() = default;
  std::string input;                               // what it reads; then the end
  std::size_t output_max = std::size_t{64} << 20;  // of each of the two. More: errc::file_too_large
  std::chrono::nanoseconds grace = Process::kGrace;
};

// Runs a program to its end, which is the end of its output, too: of every process that has
// inherited that. A status that is no success is no error. Where it cannot be waited for any more
// (cancelled, too much output), it is terminated, and collected, first.
[[nodiscard]] Task<Result<Finished>> run_process(ProcessOptions options,
                                                 RunProcessOptions how = RunProcessOptions());

}  // namespace weft::inline v0
