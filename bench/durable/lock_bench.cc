// SPDX-License-Identifier: MIT
#include "durable/lock_bench.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace weft::bench {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::vector<std::string> etcd_command(const std::string& directory, std::uint16_t port) {
  std::string client = "http://127.0.0.1:" + std::to_string(port);
  std::string peer = "http://127.0.0.1:" + std::to_string(free_port());
  return {"etcd",
          "--name",
          "bench",
          "--data-dir",
          directory,
          "--listen-client-urls",
          client,
          "--advertise-client-urls",
          client,
          "--listen-peer-urls",
          peer,
          "--initial-advertise-peer-urls",
          peer,
          "--initial-cluster",
          "bench=" + peer,
          "--logger",
          "zap",
          "--log-level",
          "error"};
}

}  // namespace

Scratch::Scratch() {
  std::string name = std::filesystem::temp_directory_path() / "weft-bench-XXXXXX";
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory can be made");
  path_ = name;
}
Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Spawned::Spawned(const std::vector<std::string>& command, int out) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork() failed");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out >= 0 ? out : STDERR_FILENO,
           STDOUT_FILENO);  // our own standard output belongs to the protocol
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
}
Spawned::~Spawned() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}
void Spawned::wait() {
  int status = 0;
  ::waitpid(std::exchange(pid_, 0), &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("a worker failed");
}

EtcdServer::EtcdServer()
    : client_port_(free_port()), server_(etcd_command(scratch_.path(), client_port_)) {
  await_port(client_port_);
}

std::uint16_t free_port() {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
               ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!bound) throw std::runtime_error("no port is free");
  return ntohs(address.sin_port);
}

void await_port(std::uint16_t port) {
  for (int i = 0; i < 1000; ++i) {
    int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(port);
    bool connected = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (connected) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("the server does not listen");
}

double time_workers(const std::vector<std::string>& command, std::size_t count,
                    void (*begin)(void*), void* argument) {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("pipe2() failed");
  std::vector<std::unique_ptr<Spawned>> workers;
  for (std::size_t i = 0; i < count; ++i)
    workers.push_back(std::make_unique<Spawned>(command, ready[1]));
  ::close(ready[1]);
  char byte = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (::read(ready[0], &byte, 1) != 1) throw std::runtime_error("a worker did not begin");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // all wait for the lock
  auto start = std::chrono::steady_clock::now();
  begin(argument);
  for (auto& worker : workers) worker->wait();
  std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  ::close(ready[0]);
  return taken.count();
}

void say_ready() {
  if (::write(STDOUT_FILENO, "r", 1) != 1) throw std::runtime_error("nobody listens to a worker");
}

std::string wall_only(double ns_per_operation) {
  return "wall_ns=" + std::to_string(ns_per_operation) +
         " cpu_ns=" + std::to_string(ns_per_operation);
}

std::string percentile(std::vector<double>& samples, double part) {
  auto place =
      samples.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(samples.size() - 1));
  std::ranges::nth_element(samples, place);
  return wall_only(*place);
}

}  // namespace weft::bench
