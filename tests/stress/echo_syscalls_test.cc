// SPDX-License-Identifier: MIT
// How often an echo enters the kernel: at most 4 times per message where readiness is asked for, at most 2 with io_uring. A library that
// asks anew what it knows already, arms what is armed, or wakes itself needs ten.
//
// The server is another process, this program again, and is traced: each entry into the kernel stops it, and is counted. So it needs no
// privilege but to trace one's own child, and sees calls that no C library makes. Time means nothing here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support/drivers.h"
#include "weft/net/tcp.h"
#include "weft/weft.h"

namespace {

using namespace weft;

constexpr int kMessages = 500;
constexpr int kWarmUp = 50;
constexpr const char* kServe = "WEFT_TEST_ECHO";  // "descriptor driver": this is the server

Driver driver_of(std::string_view name) {
  for (Driver driver : {Driver::io_uring, Driver::epoll, Driver::poll}) {
    if (to_string(driver) == name) return driver;
  }
  throw std::runtime_error("no such driver");
}

Task<void> echo(net::TcpStream stream) {
  while (true) {
    Result<PooledBytes> bytes = co_await stream.read_pooled();
    if (!bytes || bytes->empty()) co_return;
    std::span<const std::byte> rest(bytes->begin(), bytes->size());
    Result<void> written = co_await net::write_all(stream, rest);
    if (!written) co_return;
  }
}

void serve(const std::string& what) {
  std::size_t space = what.find(' ');
  EventLoop loop({.driver = driver_of(std::string_view(what).substr(space + 1))});
  net::TcpStream stream{Descriptor(UniqueFd(std::stoi(what)))};
  run(loop, echo(std::move(stream)));
}

// Two ends of a TCP connection; the second stays open in a process that is started.
std::array<int, 2> connected() {
  EventLoop loop;
  std::array<int, 2> ends{-1, -1};
  auto body = [&]() -> Task<void> {
    net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
    net::Address where = or_throw(listener.local_address());
    auto both = co_await all_of(net::TcpStream::connect(where), listener.accept());
    auto [near, far] = or_throw(std::move(both));
    ends[0] = ::fcntl(near.descriptor().number(), F_DUPFD_CLOEXEC, 0);
    ends[1] = ::fcntl(far.descriptor().number(), F_DUPFD, 0);
  };
  run(loop, body());
  ::fcntl(ends[0], F_SETFL, ::fcntl(ends[0], F_GETFL) & ~O_NONBLOCK);
  return ends;
}

pid_t start_traced(int descriptor, Driver driver) {
  // All that allocates is done before the fork.
  std::string what =
      std::string(kServe) + "=" + std::to_string(descriptor) + " " + std::string(to_string(driver));
  std::vector<char*> environment{what.data()};
  for (char** each = environ; *each; ++each) environment.push_back(*each);
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe", brief = "--gtest_brief=1";
  std::array<char*, 3> arguments{program.data(), brief.data(), nullptr};
  pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
    ::raise(SIGSTOP);
    ::execve(program.c_str(), arguments.data(), environment.data());
    ::_exit(78);
  }
  return child;
}

// Lets the child run from stop to stop, and counts, until it has ended. Returns: how it ended.
int trace(pid_t child, std::atomic<int>& entered) {
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
  ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  while (true) {
    pid_t thread = ::waitpid(-1, &status, __WALL);
    if (thread < 0) return -1;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
      continue;
    }
    constexpr int kSyscallStop = SIGTRAP | 0x80;
    long signal = 0;
    if (WSTOPSIG(status) == kSyscallStop) {
      __ptrace_syscall_info info{};
      ::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY) ++entered;
    } else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
      signal = WSTOPSIG(status);
    }
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
  }
}

// One message there and back, so many times.
bool exchange(int descriptor, int times) {
  std::array<char, 64> message{}, answer{};
  for (int i = 0; i < times; ++i) {
    if (::send(descriptor, message.data(), message.size(), MSG_NOSIGNAL) != 64) return false;
    if (::recv(descriptor, answer.data(), answer.size(), MSG_WAITALL) != 64) return false;
  }
  return true;
}

struct EchoSyscalls : ::testing::TestWithParam<Driver> {};

TEST_P(EchoSyscalls, AreFew) {
  auto [near, far] = connected();
  std::atomic<int> entered = 0;
  int before = 0, after = 0;
  bool is_echoed = false;
  std::thread client([&, near = near] {
    is_echoed = exchange(near, kWarmUp);
    before = entered;
    is_echoed = is_echoed && exchange(near, kMessages);
    after = entered;
    ::close(near);
  });
  pid_t child = start_traced(far, GetParam());
  ::close(far);
  int ended = trace(child, entered);
  client.join();
  ASSERT_NE(ended, 77) << "a process may not trace its child here: ptrace(2) is forbidden";
  EXPECT_EQ(ended, 0);
  ASSERT_TRUE(is_echoed);
  double each = static_cast<double>(after - before) / kMessages;
  std::printf("%.2f system calls per echo by %s\n", each,
              std::string(to_string(GetParam())).c_str());
  EXPECT_LE(each, GetParam() == Driver::io_uring ? 2.05 : 4.05);
  EXPECT_GE(each, 0.9) << "the test did not test";
}
INSTANTIATE_TEST_SUITE_P(Drivers, EchoSyscalls, ::testing::ValuesIn(test::drivers_here()),
                         test::driver_name);

}  // namespace

int main(int argc, char** argv) {
  if (const char* what = std::getenv(kServe)) {
    serve(what);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
