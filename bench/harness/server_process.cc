// SPDX-License-Identifier: MIT
#include "harness/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "harness/contestant.h"
#include "harness/threads.h"

namespace weft::bench {
namespace {

constexpr int kStartMillisMax = 5'000;
constexpr auto kSettle = std::chrono::milliseconds(2);  // the server is asleep again

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

double now_ns(clockid_t clock) {
  timespec now{};
  checked(clock_gettime(clock, &now), "clock_gettime");
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

[[noreturn]] void become(char** command, int core, pid_t parent, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  pin_this_thread(core);
  const int nothing = open("/dev/null", O_RDONLY);
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(1);
  execv(command[0], command);
  std::perror(command[0]);
  _exit(127);
}

std::uint16_t read_port(int from) {
  pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, kStartMillisMax) != 1) throw std::runtime_error("the server does not start");
  char line[32] = {};
  if (read(from, line, sizeof line - 1) <= 0) throw std::runtime_error("the server did not start");
  return static_cast<std::uint16_t>(std::stoul(line));
}

}  // namespace

ServerProcess::ServerProcess(char** command) {
  int out[2];
  checked(pipe2(out, O_CLOEXEC), "pipe2");
  const pid_t parent = getpid();
  const int core = two_cores().last;
  pid_ = checked(fork(), "fork");
  if (pid_ == 0) become(command, core, parent, out[1]);
  close(out[1]);
  port_ = read_port(out[0]);
  close(out[0]);
  clockid_t clock{};
  if (clock_getcpuclockid(pid_, &clock) != 0) throw std::runtime_error("no clock of the server");
  cpu_clock_ = clock;
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

double ServerProcess::cpu_ns() const { return now_ns(cpu_clock_); }

double ServerProcess::resident_bytes() const { return bench::resident_bytes(pid_); }

ServerWatch::ServerWatch(const ServerProcess& server) : server_(server) {
  std::this_thread::sleep_for(kSettle);
  cpu_ns_ = server.cpu_ns();
  wall_ns_ = now_ns(CLOCK_MONOTONIC);
}

std::string ServerWatch::per_operation(double operations) const {
  const double wall_ns = now_ns(CLOCK_MONOTONIC) - wall_ns_;
  std::this_thread::sleep_for(kSettle);
  const double cpu_ns = server_.cpu_ns() - cpu_ns_;
  return "wall_ns=" + std::to_string(wall_ns / operations) +
         " cpu_ns=" + std::to_string(cpu_ns / operations);
}

std::string describe_server(char** command) {
  std::string line;
  for (char** word = command; *word != nullptr; ++word) line += "'" + std::string(*word) + "' ";
  std::FILE* output = popen((line + "--info").c_str(), "r");
  char answer[256] = {};
  if (output == nullptr) return "unknown";
  if (std::fgets(answer, sizeof answer, output) == nullptr) std::strcpy(answer, "unknown");
  pclose(output);
  answer[std::strcspn(answer, "\n")] = '\0';
  return answer;
}

}  // namespace weft::bench
