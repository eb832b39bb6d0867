// SPDX-License-Identifier: MIT
#include "weft/run/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/drivers.h"
#include "support/loop_fixture.h"
#include "weft/weft.h"

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory)) ++count;
  ::closedir(directory);
  return count;
}

// Returns: whether no child of this process is left, collected or not, within a while.
bool no_child_is_left() {
  for (int i = 0; i < 5000; ++i) {
    siginfo_t info;
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0) return errno == ECHILD;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

ProcessOptions shell(std::string script) { return ProcessOptions("sh", {"-c", std::move(script)}); }

// No test leaves a child, a zombie or a descriptor behind.
class ProcessTest : public ::testing::TestWithParam<Driver> {
 protected:
  ProcessTest() {
    run(loop, run_process(ProcessOptions("true")));  // what the loop needs itself
    before_ = open_descriptors();
  }
  ~ProcessTest() override {
    EXPECT_TRUE(no_child_is_left());
    EXPECT_EQ(open_descriptors(), before_);
  }

  EventLoop loop{{.driver = GetParam()}};

 private:
  std::size_t before_;
};
INSTANTIATE_TEST_SUITE_P(Drivers, ProcessTest, ::testing::ValuesIn(drivers_here()), driver_name);

Task<ExitStatus> end_of(ProcessOptions options) {
  Process process = or_throw(Process::spawn(std::move(options)));
  ExitStatus first = or_throw(co_await process.wait());
  ExitStatus again = or_throw(co_await process.wait());
  EXPECT_EQ(first, again);
  EXPECT_EQ(process.kill(SIGTERM).error(), std::errc::no_such_process);
  co_return first;
}

TEST_P(ProcessTest, SaysHowItEnded) {
  EXPECT_TRUE(run(loop, end_of(ProcessOptions("true"))).success());
  EXPECT_EQ(run(loop, end_of(ProcessOptions("false"))).code(), 1);
  EXPECT_EQ(run(loop, end_of(shell("exit 42"))), ExitStatus::exited(42));
  EXPECT_EQ(run(loop, end_of(shell("kill -9 $$"))), ExitStatus::killed(SIGKILL));
  EXPECT_EQ(ExitStatus::exited(42).text(), "exit 42");
  EXPECT_EQ(ExitStatus::killed(SIGKILL).text(), "signal 9 (Killed)");
  EXPECT_FALSE(ExitStatus::killed(SIGKILL).success());
}

TEST_P(ProcessTest, WithoutPidfdItsEndIsPolledFor) {
  ProcessOptions options = shell("exit 7");
  options.use_pidfd = false;
  EXPECT_EQ(run(loop, end_of(std::move(options))).code(), 7);
  auto cancelled = []() -> Task<> {
    ProcessOptions sleeping("sleep", {"100"});
    sleeping.use_pidfd = false;
    Process process = or_throw(Process::spawn(std::move(sleeping)));
    auto ended = co_await timeout(3ms, process.wait());
    EXPECT_FALSE(ended.has_value());
  };
  run(loop, cancelled());
}

TEST_P(ProcessTest, WhatIsNotThereIsAnError) {
  EXPECT_EQ(Process::spawn(ProcessOptions("/no/such/program")).error(),
            std::errc::no_such_file_or_directory);
  EXPECT_EQ(Process::spawn(ProcessOptions("no-such-program-in-path")).error(),
            std::errc::no_such_file_or_directory);
  EXPECT_EQ(Process::spawn(ProcessOptions("/")).error(), std::errc::permission_denied);
  ProcessOptions nowhere("true");
  nowhere.working_directory = "/no/such/directory";
  nowhere.in = Redirect::pipe();
  nowhere.out = Redirect::pipe();
  EXPECT_EQ(Process::spawn(std::move(nowhere)).error(), std::errc::no_such_file_or_directory);
  auto failed = run(loop, run_process(ProcessOptions("/no/such/program")));
  EXPECT_EQ(failed.error(), std::errc::no_such_file_or_directory);
}

TEST_P(ProcessTest, AMegabyteGoesThroughCatAndComesBack) {
  RunProcessOptions how;
  for (int i = 0; how.input.size() < (1 << 20); ++i) how.input += std::to_string(i) + "\n";
  std::string sent = how.input;
  Finished done = or_throw(run(loop, run_process(ProcessOptions("cat"), std::move(how))));
  EXPECT_TRUE(done.status.success());
  EXPECT_TRUE(done.out == sent);
  EXPECT_EQ(done.err, "");
}

TEST_P(ProcessTest, PipesAreDescriptors) {
  auto main = []() -> Task<std::string> {
    ProcessOptions options("tr", {"a-z", "A-Z"});
    options.in = Redirect::pipe();
    options.out = Redirect::pipe();
    Process process = or_throw(Process::spawn(std::move(options)));
    std::string text = "woven", back(64, '\0');
    or_throw(co_await process.in.write(std::as_bytes(std::span(text))));
    process.in.close();
    std::size_t count =
        or_throw(co_await process.out.read(std::as_writable_bytes(std::span(back))));
    back.resize(count);
    EXPECT_TRUE(or_throw(co_await process.wait()).success());
    co_return back;
  };
  EXPECT_EQ(run(loop, main()), "WOVEN");
}

TEST_P(ProcessTest, OutputAndErrorsAreCollectedApart) {
  Finished done = or_throw(run(loop, run_process(shell("echo out; echo err >&2; exit 3"))));
  EXPECT_EQ(done.out, "out\n");
  EXPECT_EQ(done.err, "err\n");
  EXPECT_EQ(done.status.code(), 3);
}

TEST_P(ProcessTest, GetsWhatItIsGiven) {
  ProcessOptions options = shell("pwd; echo \"$WEFT\"; echo \"$HOME\"; cat");
  options.environment = {{"WEFT=shuttle", "PATH=/usr/bin:/bin"}};
  options.working_directory = "/";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "mine", 4), 4);
  ::close(ends[1]);
  options.in = Redirect::to(UniqueFd(ends[0]));
  options.err = Redirect::null();
  Finished done = or_throw(run(loop, run_process(std::move(options))));
  EXPECT_EQ(done.out, "/\nshuttle\n\nmine");
}

TEST_P(ProcessTest, InheritsNoDescriptorAndNoSignalMask) {
  int leaky = ::fcntl(0, F_DUPFD, 50);  // not close-on-exec: another library's
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // No shell between: it would put some of it right.
  Finished listed = or_throw(run(loop, run_process(ProcessOptions("ls", {"/proc/self/fd"}))));
  ProcessOptions masks("sed", {"-n", "s/^Sig[BI][lg][kn]:.//p", "/proc/self/status"});
  Finished masked = or_throw(run(loop, run_process(std::move(masks))));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(leaky);
  EXPECT_EQ(listed.out, "0\n1\n2\n3\n");  // 3: ls itself has the directory open
  std::istringstream lines(masked.out);
  unsigned long blocked = 1, ignored = 1;
  lines >> std::hex >> blocked >> ignored;
  EXPECT_EQ(blocked, 0u);
  EXPECT_EQ(ignored & 0x7fffffff, 0u);  // 32 and 33 are the C library's own
}

TEST_P(ProcessTest, ACancelledWaitLeavesTheChild) {
  auto main = []() -> Task<> {
    Process process = or_throw(Process::spawn(ProcessOptions("sleep", {"100"})));
    auto ended = co_await timeout(1ms, process.wait());
    EXPECT_FALSE(ended.has_value());
    EXPECT_EQ(::kill(process.id(), 0), 0);
    EXPECT_FALSE(process.try_wait().has_value());
    or_throw(process.kill(SIGUSR1));
    ExitStatus status = or_throw(co_await process.wait());
    EXPECT_EQ(status, ExitStatus::killed(SIGUSR1));
  };
  run(loop, main());
}

TEST_P(ProcessTest, TerminateAsksFirstAndThenKills) {
  auto main = []() -> Task<> {
    Process polite = or_throw(Process::spawn(ProcessOptions("sleep", {"100"})));
    EXPECT_EQ(or_throw(co_await polite.terminate()), ExitStatus::killed(SIGTERM));

    ProcessOptions deaf = shell("trap '' TERM; echo ready; while :; do sleep 100; done");
    deaf.out = Redirect::pipe();
    deaf.own_group = true;  // its sleep, too
    Process stubborn = or_throw(Process::spawn(std::move(deaf)));
    std::byte ready[8];
    or_throw(co_await stubborn.out.read(ready));
    EXPECT_EQ(or_throw(co_await stubborn.terminate(2ms)), ExitStatus::killed(SIGKILL));
  };
  run(loop, main());
}

TEST_P(ProcessTest, CancelOfRunProcessKillsAndCollects) {
  auto main = []() -> Task<> {
    ProcessOptions sleeping("sleep", {"100"});
    auto ended = co_await timeout(2ms, run_process(std::move(sleeping)));
    EXPECT_FALSE(ended.has_value());
    // Nothing is left to the reaper: it has been collected when we come here.
    siginfo_t info;
    EXPECT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    EXPECT_EQ(errno, ECHILD);

    ProcessOptions deaf = shell("trap '' TERM; while :; do sleep 0.01; done");
    RunProcessOptions how;
    how.grace = 2ms;
    ended = co_await timeout(20ms, run_process(std::move(deaf), std::move(how)));
    EXPECT_FALSE(ended.has_value());
    EXPECT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    EXPECT_EQ(errno, ECHILD);
  };
  run(loop, main());
}

TEST_P(ProcessTest, TooMuchOutputEndsIt) {
  RunProcessOptions how;
  how.output_max = 100'000;
  auto result = run(loop, run_process(ProcessOptions("yes"), std::move(how)));
  EXPECT_EQ(result.error(), std::errc::file_too_large);
}

TEST_P(ProcessTest, InputThatIsNotReadIsNoError) {
  RunProcessOptions how;
  how.input.assign(1 << 20, 'x');
  Finished done = or_throw(run(loop, run_process(ProcessOptions("true"), std::move(how))));
  EXPECT_TRUE(done.status.success());
}

TEST_P(ProcessTest, ADroppedOneIsKilledAndLeavesNoZombie) {
  for (int i = 0; i < 10; ++i) {
    Process dropped = or_throw(Process::spawn(ProcessOptions("sleep", {"100"})));
    pid_t id = dropped.id();
    Process moved = std::move(dropped);
    EXPECT_EQ(moved.id(), id);
  }
  EXPECT_TRUE(no_child_is_left());
}

TEST_P(ProcessTest, AHundredAtOnce) {
  auto main = []() -> Task<int> {
    int sum = 0;
    auto one = [&](int i) -> Task<> {
      Finished done = or_throw(co_await run_process(shell("echo " + std::to_string(i))));
      sum += std::stoi(done.out);
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 1; i <= 100; ++i) n.start(one, i);
      co_return join;
    };
    co_await with_nursery(body);
    co_return sum;
  };
  EXPECT_EQ(run(loop, main()), 5050);
}

TEST(Process, OnTheWorkersOfAContext) {
  IOContext ctx{{.workers = 3}};
  auto main = []() -> Task<> {
    auto one = []() -> Task<> {
      Finished done = or_throw(co_await run_process(shell("echo hello")));
      EXPECT_EQ(done.out, "hello\n");
    };
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      for (int i = 0; i < 20; ++i) n.schedule(one);
      co_return join;
    };
    co_await with_nursery(body);
  };
  ctx.run(main());
  EXPECT_TRUE(no_child_is_left());
}

TEST(Process, StopOfAContextEndsItsChildren) {
  IOContext ctx{{.workers = 2}};
  auto main = [&]() -> Task<> {
    auto one = []() -> Task<> {
      ProcessOptions sleeping("sleep", {"100"});
      static_cast<void>(co_await run_process(std::move(sleeping)));
    };
    for (int i = 0; i < 4; ++i) ctx.schedule(one);
    co_await sleep_for(5ms);
    ctx.stop();
    co_await suspend_forever();
  };
  ctx.run(main());
  EXPECT_TRUE(no_child_is_left());
}

TEST(Process, ASecondWaiterIsRefused) {
  EventLoop loop;
  auto main = []() -> Task<> {
    Process process = or_throw(Process::spawn(ProcessOptions("sleep", {"100"})));
    auto second = [&]() -> Task<> {
      co_await yield();
      EXPECT_THROW(static_cast<void>(co_await process.wait()), UsageError);
      or_throw(process.kill(SIGKILL));
    };
    co_await all_of(process.wait(), second());
  };
  run(loop, main());
}

}  // namespace
