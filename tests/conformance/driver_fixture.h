// SPDX-License-Identifier: MIT
#pragma once
// What the examination of drivers shares: a fixture that runs on each, and sockets to examine with.
//
//     struct Reading : DriverTest {};
//     WEFT_ON_EVERY_DRIVER(Reading);
//     TEST_P(Reading, EndsWithZero) { on_loop([&]() -> Task<void> { … }); }
//
// io_uring is never skipped in silence: where the kernel has none its tests fail and say so, unless
// the environment's WEFT_TEST_NO_URING=1 leaves them out.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/loop_fixture.h"
#include "weft/weft.h"

namespace weft::inline v0 {
inline void PrintTo(Driver driver, std::ostream* out) { *out << to_string(driver); }
}  // namespace weft::inline v0

namespace weft::test {

using namespace std::chrono_literals;

// Longer than any test takes, sanitized on a busy machine: then it hangs, and is told so.
inline constexpr auto kTooLong = kSanitized ? 200s : 60s;

inline std::vector<Driver> drivers() {
  std::vector<Driver> all{Driver::epoll, Driver::poll};
  const char* without = std::getenv("WEFT_TEST_NO_URING");
  if (!without || std::string_view(without) != "1") all.push_back(Driver::io_uring);
  return all;
}

// Throws, and so fails the test, if the kernel has no such driver.
inline EventLoopOptions options_for(Driver driver) { return {.driver = driver}; }

class DriverTest : public ::testing::TestWithParam<Driver> {
 protected:
  DriverTest() : loop(options_for(GetParam())) {
    EXPECT_EQ(loop.driver(), GetParam()) << "WEFT_DRIVER is set: every driver would be the same";
  }
  ~DriverTest() override {
    EXPECT_EQ(loop.strand_count(), 0u) << "a task outlived its test";
    EXPECT_EQ(loop.statistics().operations, 0u) << "an operation outlived its task";
  }

  // Runs body(), a coroutine, on the loop.
  template <class Body>
  void on_loop(Body body) {
    on_loop(loop, body);
  }
  template <class Body>
  static void on_loop(EventLoop& other, Body& body) {
    auto root = [&]() -> Task<bool> {
      auto ended = co_await timeout(kTooLong, body());
      co_return ended.has_value();
    };
    EXPECT_TRUE(run(other, root())) << "it hangs";
  }

  EventLoop loop;
};

#define WEFT_ON_EVERY_DRIVER(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(Drivers, suite, ::testing::ValuesIn(::weft::test::drivers()), \
                           [](const auto& info) { return std::string(to_string(info.param)); })

// --- Descriptors --------------------------------------------------------------------------------

inline int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

// How many descriptors this process may have, while this lives: so many, or what is the most.
class FileLimit {
 public:
  explicit FileLimit(rlim_t wanted) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit{wanted, std::max(wanted, before_.rlim_max)};
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
    limit = {std::min(wanted, before_.rlim_max), before_.rlim_max};  // more is not ours to have
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  [[nodiscard]] static rlim_t now() {
    rlimit limit;
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }

 private:
  rlimit before_;
};

// Takes all descriptors that are left.
class Exhaustion {
 public:
  Exhaustion() {
    for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken_.emplace_back(fd);
    EXPECT_EQ(errno, EMFILE);
  }

 private:
  std::vector<UniqueFd> taken_;
};

// Descriptors that this process has open.
inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(each);
    ++count;
  }
  return count;
}

struct FdPair {
  UniqueFd first, second;
};
inline FdPair raw_pair(int type = SOCK_STREAM) {
  int fds[2];
  checked(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), "socketpair");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}
// first: to read from.
inline FdPair raw_pipe() {
  int fds[2];
  checked(::pipe2(fds, O_CLOEXEC), "pipe2");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// ours: weft's; theirs: a blocking descriptor that the test handles by hand.
struct Pair {
  Descriptor ours;
  UniqueFd theirs;
};
inline Pair socket_pair(int type = SOCK_STREAM) {
  FdPair both = raw_pair(type);
  return {Descriptor(std::move(both.first)), std::move(both.second)};
}

inline sockaddr_in localhost(std::uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
inline const sockaddr& general(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr&>(address);
}
inline UniqueFd tcp_socket() {
  return UniqueFd(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
}

// A listening TCP socket and where it listens.
struct Listener {
  Descriptor socket;
  sockaddr_in address;
};
inline Listener tcp_listener(int backlog = 1024) {
  UniqueFd fd = tcp_socket();
  int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address = localhost();
  socklen_t size = sizeof address;
  checked(::bind(fd.get(), &general(address), size), "bind");
  checked(::listen(fd.get(), backlog), "listen");
  checked(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  return {Descriptor(std::move(fd)), address};
}
// A connection to it, by hand.
inline UniqueFd connect_to(const sockaddr_in& address) {
  UniqueFd fd = tcp_socket();
  checked(::connect(fd.get(), &general(address), sizeof address), "connect");
  return fd;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// By hand: everything, or the test ends.
inline void put(const UniqueFd& fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(fd.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    text.remove_prefix(static_cast<std::size_t>(checked(static_cast<int>(count), "write")));
  }
}
// By hand: what is there, or comes; "" at the end.
inline std::string get(const UniqueFd& fd, std::size_t most = 65536) {
  std::string text(most, '\0');
  ssize_t count;
  do {
    count = ::read(fd.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  text.resize(static_cast<std::size_t>(checked(static_cast<int>(count), "read")));
  return text;
}

// Writes until it would block. Returns: how many bytes that were.
inline std::size_t fill(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  std::string block(65536, 'f');
  std::size_t sum = 0;
  for (std::size_t size = block.size(); size > 0; size /= 2) {
    for (ssize_t count; (count = ::write(fd, block.data(), size)) > 0;) {
      sum += static_cast<std::size_t>(count);
    }
  }
  ::fcntl(fd, F_SETFL, flags);
  return sum;
}
// By hand: takes so many bytes.
inline void drain(const UniqueFd& fd, std::size_t bytes) {
  while (bytes > 0) bytes -= get(fd, bytes < 65536 ? bytes : 65536).size();
}

// --- Tasks --------------------------------------------------------------------------------------

// One read().
inline Task<std::string> read_text(Descriptor& from, std::size_t most = 65536) {
  std::vector<std::byte> buffer(most);
  Result<std::size_t> count = co_await from.read(buffer);
  co_return text_of(std::span(buffer).first(or_throw(count)));
}
// A stream gives what it likes of what is there. These go on until so many bytes have come, or the end. The first
// never asks for more than that; what the second gets beyond them shows.
inline Task<std::string> read_exactly(Descriptor& from, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    std::string more = co_await read_text(from, bytes - text.size());
    if (more.empty()) break;
    text += more;
  }
  co_return text;
}
inline Task<std::string> read_at_least(Descriptor& from, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    std::string more = co_await read_text(from);
    if (more.empty()) break;
    text += more;
  }
  co_return text;
}
inline Task<void> write_all(Descriptor& to, std::string_view text) {
  while (!text.empty()) {
    Result<std::size_t> count = co_await to.write(bytes_of(text));
    text.remove_prefix(or_throw(count));
  }
}
// Until what was begun has reached the kernel, and what it had to say at once has come back.
inline Task<void> settle() { co_await sleep_for(2ms); }

inline bool is_error(const auto& result, std::errc code) {
  return !result.has_value() && result.error() == code;
}

inline std::chrono::nanoseconds thread_cpu() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace weft::test
