// SPDX-License-Identifier: MIT
#include "harness/contestant.h"

#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace weft::bench {
namespace {

double now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

double resident_bytes(pid_t process) {
  // Second field of statm, in pages (proc(5)).
  const std::string path = "/proc/" + std::to_string(process) + "/statm";
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) throw std::runtime_error("cannot read " + path);
  unsigned long size = 0;
  unsigned long resident = 0;
  const int fields = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  if (fields != 2) throw std::runtime_error("cannot parse " + path);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

namespace {

std::string answer(const std::string& line, const char* info, std::span<const Measure> measures) {
  std::istringstream words(line);
  std::string verb;
  std::string name;
  std::size_t n = 0;
  words >> verb;
  if (verb == "info") return info;
  if (verb != "run" || !(words >> name >> n) || n == 0)
    return "error expected: info | run <measure> <n>";
  for (const Measure& measure : measures) {
    if (name != measure.name) continue;
    try {
      return measure.run(n);
    } catch (const std::exception& e) {
      return std::string("error ") + e.what();
    }
  }
  return "error no measure named " + name;
}

}  // namespace

void Stopwatch::restart() {
  cpu_ns_ = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  wall_ns_ =
      now_ns(CLOCK_MONOTONIC);  // last: the wall clock decides, so it runs over the least of ours
}

void Stopwatch::restart_wall_at(std::chrono::steady_clock::time_point wall) {
  restart();
  wall_ns_ = std::chrono::duration<double, std::nano>(wall.time_since_epoch()).count();
}

std::string Stopwatch::per_operation(std::size_t operations) const {
  const double wall = now_ns(CLOCK_MONOTONIC) - wall_ns_;
  const double cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns_;
  const auto count = static_cast<double>(operations);
  return "wall_ns=" + std::to_string(wall / count) + " cpu_ns=" + std::to_string(cpu / count);
}

MemoryProbe::MemoryProbe() : bytes_(resident_bytes(getpid())) {}

std::string MemoryProbe::per_task(std::size_t tasks) const {
  return "bytes=" +
         std::to_string((resident_bytes(getpid()) - bytes_) / static_cast<double>(tasks));
}

int serve(const char* info, std::span<const Measure> measures) {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << answer(line, info, measures) << std::endl;
  return 0;
}

}  // namespace weft::bench
