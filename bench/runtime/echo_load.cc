// SPDX-License-Identifier: MIT
// The load of the echo measures, and their judge: `echo_load <server> [argument]...`.
//
// Starts the server on the last core, drives it from the first with 64 connections of one 64-byte
// message in flight each, and measures it from outside, all servers alike:
//
//   run echo <n>            the server's CPU time per message (user and system, all its threads), and
//                           the wall time, which is the throughput of both sides together
//   run echo_syscalls <n>   system calls that the server's threads enter, per message
//
// System calls are counted by the kernel at the tracepoint raw_syscalls:sys_enter: whoever enters
// the kernel is counted, with or without a C library. That needs tracefs and the right to use it;
// without, the measure says so. Counting costs the server time: so it has a run of its own.
//
// The server lives as long as this program (PR_SET_PDEATHSIG), and so do the connections: they are
// opened, and warmed up, before any clock starts.
#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "harness/contestant.h"
#include "harness/threads.h"
#include "runtime/echo_socket.h"

namespace weft::bench {
namespace {

constexpr std::size_t kConnections = 64;
constexpr std::size_t kMessageBytes = 64;
constexpr std::size_t kWarmUpMessages = 20'000;
constexpr int kReplyMillisMax = 5'000;
constexpr auto kSettle = std::chrono::milliseconds(2);  // the server is asleep again

int checked(long result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return static_cast<int>(result);
}

double now_ns(clockid_t clock) {
  timespec now{};
  checked(clock_gettime(clock, &now), "clock_gettime");
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

class Server {
 public:
  explicit Server(char** command) {
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
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] double cpu_ns() const { return now_ns(cpu_clock_); }

 private:
  [[noreturn]] static void become(char** command, int core, pid_t parent, int out) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before the line above
    pin_this_thread(core);
    const int nothing = open("/dev/null", O_RDONLY);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(1);
    execv(command[0], command);
    std::perror(command[0]);
    _exit(127);
  }

  static std::uint16_t read_port(int from) {
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kReplyMillisMax) != 1)
      throw std::runtime_error("the server does not start");
    char line[32] = {};
    if (read(from, line, sizeof line - 1) <= 0)
      throw std::runtime_error("the server did not start");
    return static_cast<std::uint16_t>(std::stoul(line));
  }

  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
  clockid_t cpu_clock_ = 0;
};

// System calls entered by every thread of a process, threads that start later included.
class SyscallCounter {
 public:
  explicit SyscallCounter(pid_t process) {
    perf_event_attr event{};
    event.size = sizeof event;
    event.type = PERF_TYPE_TRACEPOINT;
    event.config = tracepoint();
    event.inherit = 1;
    event.disabled = 1;
    const std::string folder = "/proc/" + std::to_string(process) + "/task";
    DIR* tasks = opendir(folder.c_str());
    if (tasks == nullptr) throw std::runtime_error("the server is gone");
    while (const dirent* task = readdir(tasks)) {
      if (task->d_name[0] == '.') continue;
      const long id = std::stol(task->d_name);
      const long counter = syscall(SYS_perf_event_open, &event, id, -1, -1, PERF_FLAG_FD_CLOEXEC);
      if (counter < 0) {
        closedir(tasks);
        throw std::system_error(errno, std::generic_category(),
                                "system calls cannot be counted here: perf_event_open");
      }
      counters_.push_back(static_cast<int>(counter));
    }
    closedir(tasks);
    for (const int counter : counters_) checked(ioctl(counter, PERF_EVENT_IOC_ENABLE, 0), "ioctl");
  }
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;
  ~SyscallCounter() {
    for (const int counter : counters_) close(counter);
  }

  [[nodiscard]] double count() const {
    std::uint64_t sum = 0;
    for (const int counter : counters_) {
      std::uint64_t calls = 0;
      if (read(counter, &calls, sizeof calls) != sizeof calls)
        throw std::runtime_error("cannot read the counter of system calls");
      sum += calls;
    }
    return static_cast<double>(sum);
  }

 private:
  static std::uint64_t tracepoint() {
    for (const char* root : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
      std::ifstream file(std::string(root) + "/events/raw_syscalls/sys_enter/id");
      std::uint64_t id = 0;
      if (file >> id) return id;
    }
    throw std::runtime_error("system calls cannot be counted here: no readable tracefs");
  }

  std::vector<int> counters_;
};

class Connection {
 public:
  explicit Connection(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    checked(fd_, "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    checked(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), "connect");
    set_no_delay(fd_);
    checked(fcntl(fd_, F_SETFL, O_NONBLOCK), "fcntl");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(fd_); }

  [[nodiscard]] int fd() const { return fd_; }

  void ask(std::size_t messages) {
    left_ = messages;
    send();
  }
  // Returns: true when the last reply of ask() has come.
  bool receive() {
    const ssize_t got = read(fd_, reply_.data() + received_, kMessageBytes - received_);
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) throw std::runtime_error("the server closed a connection");
    received_ += static_cast<std::size_t>(got);
    if (received_ < kMessageBytes) return false;
    if (std::memcmp(reply_.data(), message_.data(), kMessageBytes) != 0)
      throw std::runtime_error("the echo is not what was sent");
    if (--left_ == 0) return true;
    send();
    return false;
  }

 private:
  void send() {
    received_ = 0;
    ++sequence_;
    std::memcpy(message_.data(), &sequence_, sizeof sequence_);
    // At most one message is under way: the socket's buffer always has room for it.
    if (write(fd_, message_.data(), kMessageBytes) != static_cast<ssize_t>(kMessageBytes))
      throw std::system_error(errno, std::generic_category(), "write");
  }

  int fd_;
  std::size_t left_ = 0;
  std::size_t received_ = 0;
  std::uint64_t sequence_ = 0;
  std::array<char, kMessageBytes> message_ = {};
  std::array<char, kMessageBytes> reply_ = {};
};

class Load {
 public:
  explicit Load(std::uint16_t port) : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll")) {
    connections_.reserve(kConnections);
    for (std::size_t i = 0; i < kConnections; ++i) {
      connections_.push_back(std::make_unique<Connection>(port));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = connections_.back().get();
      checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back()->fd(), &event), "epoll_ctl");
    }
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { close(epoll_); }

  // Returns: the messages that were echoed, at least n.
  std::size_t exchange(std::size_t n) {
    const std::size_t each = (n + kConnections - 1) / kConnections;
    for (auto& connection : connections_) connection->ask(each);
    std::array<epoll_event, kConnections> events;
    for (std::size_t open = kConnections; open > 0;) {
      const int ready = epoll_wait(epoll_, events.data(), kConnections, kReplyMillisMax);
      if (ready == 0) throw std::runtime_error("the server does not answer");
      if (ready < 0 && errno != EINTR) checked(ready, "epoll_wait");
      for (int i = 0; i < ready; ++i)
        if (static_cast<Connection*>(events[i].data.ptr)->receive()) --open;
    }
    return each * kConnections;
  }

 private:
  int epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

char** server_command = nullptr;

struct Session {
  Session() : server(server_command), load(server.port()) {
    pin_this_thread(two_cores().first);
    load.exchange(kWarmUpMessages);
  }
  Server server;
  Load load;
};

// Started by the first run, not before: an answer to `info` costs nothing.
Session& session() {
  static Session only;
  return only;
}

std::string echo(std::size_t n) {
  auto& [server, load] = session();
  std::this_thread::sleep_for(kSettle);
  const double cpu = server.cpu_ns();
  const double wall = now_ns(CLOCK_MONOTONIC);
  const auto messages = static_cast<double>(load.exchange(n));
  const double wall_ns = (now_ns(CLOCK_MONOTONIC) - wall) / messages;
  // The kernel brings another process's clock up to date when it leaves the core.
  std::this_thread::sleep_for(kSettle);
  const double cpu_ns = (server.cpu_ns() - cpu) / messages;
  return "wall_ns=" + std::to_string(wall_ns) + " cpu_ns=" + std::to_string(cpu_ns);
}

std::string echo_syscalls(std::size_t n) {
  auto& [server, load] = session();
  const SyscallCounter counter(server.pid());
  const auto messages = static_cast<double>(load.exchange(n));
  return "syscalls=" + std::to_string(counter.count() / messages);
}

constexpr Measure kMeasures[] = {{"echo", echo}, {"echo_syscalls", echo_syscalls}};

// Asks the server what it is: `<server> [argument]... --info` prints one line.
std::string describe(int argc, char** argv) {
  std::string command;
  for (int i = 1; i < argc; ++i) command += "'" + std::string(argv[i]) + "' ";
  std::FILE* output = popen((command + "--info").c_str(), "r");
  char line[256] = {};
  if (output == nullptr) return "unknown";
  if (std::fgets(line, sizeof line, output) == nullptr) std::strcpy(line, "unknown");
  pclose(output);
  line[std::strcspn(line, "\n")] = '\0';
  return line;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: echo_load <server> [argument]...\n", stderr);
    return 64;
  }
  weft::bench::server_command = argv + 1;
  (void)weft::bench::allowed_cores();
  return weft::bench::serve(weft::bench::describe(argc, argv).c_str(), weft::bench::kMeasures);
}
