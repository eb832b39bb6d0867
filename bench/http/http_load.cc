// SPDX-License-Identifier: MIT
// The load of suite http, and its judge: `http_load <server> [argument]...`.
//
// Starts the server on the last core, drives it from the first with 64 connections, and measures it
// from outside, all servers alike:
//
//   run plaintext <seconds>   wrk, one request in flight on each connection: the server's CPU time per
//                             request (user and system, all its threads), and the wall time, which
//                             is the throughput of both sides together
//   run pipelined <n>         16 requests in flight on each, sent and answered together
//   run pipelined_wrk <seconds>   the same by wrk (pipeline.lua), which takes longer to read an answer than
//                             the fastest servers to give it
//   run tls <seconds>         the same as plaintext, over TLS
//   run syscalls <n>          system calls that the server's threads enter, per request
//   run websocket <n>         echo of 64-byte messages, one in flight on each connection: times as above
//   run idle <n>              resident bytes of the server per connection that was answered once and now waits
//   run idle_websocket <n>    the same of WebSocket, after one echo
//
// Before any clock starts the server's answer is looked at: all of them say the same. wrk opens its connections inside
// the clock: a few thousandths of what is measured.
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/closed_loop.h"
#include "harness/contestant.h"
#include "harness/server_process.h"
#include "harness/syscall_counter.h"
#include "harness/threads.h"
#include "http/plaintext.h"

namespace weft::bench {
namespace {

constexpr std::size_t kConnections = 64;
constexpr std::size_t kPipelineDepth = 16;
constexpr std::size_t kMessageBytes = 64;
constexpr std::size_t kWarmUpMessages = 20'000;

char** server_command = nullptr;

struct Session {
  Session() : server(server_command) { pin_this_thread(two_cores().first); }
  ServerProcess server;
};

// Started by the first run, not before: an answer to `info` costs nothing.
ServerProcess& server() {
  static Session only;
  return only.server;
}

// --- HTTP, by hand ----------------------------------------------------------------------------------

constexpr const char* kRequest = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

// Returns: the whole answer, which is what it should be.
std::string ask_once(int socket) {
  send_all(socket, kRequest);
  std::string answer;
  const std::string end = "\r\n\r\n" + std::string(kPlaintext);
  while (!answer.ends_with(end)) receive_some(socket, answer);
  for (const char* part : {"HTTP/1.1 200 OK\r\n", "ate: ", "erver: ", "ype: text/plain"}) {
    if (answer.find(part) == answer.npos)
      throw std::runtime_error(std::string("the answer lacks ") + part);
  }
  return answer;
}

// Warm connections, each with so many requests in one message. Their answers all have the same length.
void open(ClosedLoop& load, std::size_t depth) {
  std::string requests;
  for (std::size_t i = 0; i < depth; ++i) requests += kRequest;
  for (std::size_t i = 0; i < kConnections; ++i) {
    const int socket = connect_to_loopback(server().port());
    load.add(socket, {.message = requests, .reply_bytes = ask_once(socket).size() * depth});
  }
  load.exchange(kWarmUpMessages / depth);
}

std::string pipelined(std::size_t n) {
  ClosedLoop load;
  open(load, kPipelineDepth);
  const ServerWatch watch(server());
  return watch.per_operation(load.exchange(n / kPipelineDepth) * kPipelineDepth);
}

std::string syscalls(std::size_t n) {
  ClosedLoop load;
  open(load, 1);
  const SyscallCounter counter(server().pid());
  const double requests = load.exchange(n);
  return "syscalls=" + std::to_string(counter.count() / requests);
}

// Connections that close with their owner. `greet` is what each does before it waits.
class Idle {
 public:
  explicit Idle(void (*greet)(int socket)) : greet_(greet) {}
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
  ~Idle() {
    for (const int socket : sockets_) close(socket);
  }
  void open(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      sockets_.push_back(connect_to_loopback(server().port()));
      greet_(sockets_.back());
    }
  }

 private:
  void (*greet_)(int socket);
  std::vector<int> sockets_;
};

std::string measure_idle(std::size_t n, void (*greet)(int socket)) {
  Idle connections(greet);
  connections.open(kConnections);  // what the first ones cost is not theirs
  const double before = server().resident_bytes();
  connections.open(n);
  const double after = server().resident_bytes();
  return "bytes=" + std::to_string((after - before) / static_cast<double>(n));
}

void look_at_the_answer(int socket) { (void)ask_once(socket); }

std::string idle(std::size_t n) { return measure_idle(n, look_at_the_answer); }

// --- HTTP, by wrk -----------------------------------------------------------------------------------

std::string beside_this_program(const char* name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

// The number in front of `word`, which must be there.
double number_before(std::string_view text, std::string_view word) {
  const std::size_t end = text.find(word);
  if (end == text.npos) throw std::runtime_error("wrk did not say how many requests it made");
  const std::size_t begin = text.find_last_not_of("0123456789", end - 1) + 1;
  double number = 0;
  std::from_chars(text.data() + begin, text.data() + end, number);
  return number;
}

// Returns: the requests that were answered.
double run_wrk(std::size_t seconds, const std::string& options, const char* scheme) {
  const std::string command = "exec wrk -t 1 -c " + std::to_string(kConnections) + " -d " +
                              std::to_string(seconds) + "s " + options + " " + scheme +
                              "://127.0.0.1:" + std::to_string(server().port()) + "/ 2>&1";
  std::FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) throw std::runtime_error("popen");
  std::string text;
  for (int c = 0; (c = std::fgetc(output)) != EOF;) text += static_cast<char>(c);
  if (pclose(output) != 0) throw std::runtime_error("wrk failed (Debian: wrk)");
  if (text.find("Non-2xx") != text.npos || text.find("Socket errors") != text.npos)
    throw std::runtime_error("wrk met with errors");
  return number_before(text, " requests in ");
}

std::string measure_wrk(std::size_t seconds, const std::string& options, const char* scheme) {
  const ServerWatch watch(server());
  return watch.per_operation(run_wrk(seconds, options, scheme));
}

std::string plaintext(std::size_t seconds) {
  Idle(look_at_the_answer).open(1);
  return measure_wrk(seconds, "", "http");
}

std::string pipelined_wrk(std::size_t seconds) {
  Idle(look_at_the_answer).open(1);
  return measure_wrk(seconds, "-s " + beside_this_program("pipeline.lua"), "http");
}

std::string tls(std::size_t seconds) { return measure_wrk(seconds, "", "https"); }

// --- WebSocket --------------------------------------------------------------------------------------

void upgrade(int socket) {
  send_all(socket,
           "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  std::string answer;
  while (!answer.ends_with("\r\n\r\n")) receive_some(socket, answer);
  if (!answer.starts_with("HTTP/1.1 101 ") ||
      answer.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") == answer.npos)
    throw std::runtime_error("the server does not upgrade");
}

// RFC 6455, 5.2: one frame, text, masked by the client and not by the server.
Talk frames(std::string_view text) {
  constexpr char kMask[] = {'\x37', '\x12', '\x5a', '\x21'};
  const std::string head{'\x81'};
  std::string masked(text);
  for (std::size_t i = 0; i < masked.size(); ++i) masked[i] ^= kMask[i % 4];
  const auto length = static_cast<char>(text.size());
  std::string reply = head + length + std::string(text);
  return {.message = head + static_cast<char>(0x80 | length) + std::string(kMask, 4) + masked,
          .reply_bytes = reply.size(),
          .reply = std::move(reply)};
}

// The connections stay open.
ClosedLoop& websockets() {
  static ClosedLoop load;
  static const bool is_open = [] {
    for (std::size_t i = 0; i < kConnections; ++i) {
      const int socket = connect_to_loopback(server().port());
      upgrade(socket);
      std::string text = std::to_string(i);
      text.resize(kMessageBytes, '.');
      load.add(socket, frames(text));
    }
    load.exchange(kWarmUpMessages);
    return true;
  }();
  (void)is_open;
  return load;
}

std::string websocket(std::size_t n) {
  ClosedLoop& load = websockets();
  const ServerWatch watch(server());
  return watch.per_operation(load.exchange(n));
}

void echo_once(int socket) {
  upgrade(socket);
  const Talk talk = frames("Hello?");
  send_all(socket, talk.message);
  std::string reply;
  while (reply.size() < talk.reply_bytes) receive_some(socket, reply);
  if (reply != talk.reply) throw std::runtime_error("the echo is not what was sent");
}

std::string idle_websocket(std::size_t n) { return measure_idle(n, echo_once); }

// ----------------------------------------------------------------------------------------------------

constexpr Measure kMeasures[] = {{"plaintext", plaintext},
                                 {"pipelined", pipelined},
                                 {"pipelined_wrk", pipelined_wrk},
                                 {"tls", tls},
                                 {"syscalls", syscalls},
                                 {"websocket", websocket},
                                 {"idle", idle},
                                 {"idle_websocket", idle_websocket}};

// For `idle`: of this program and, by inheritance, of the server.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: http_load <server> [argument]...\n", stderr);
    return 64;
  }
  weft::bench::server_command = argv + 1;
  (void)weft::bench::allowed_cores();
  weft::bench::allow_many_files();
  const std::string info = weft::bench::describe_server(weft::bench::server_command);
  return weft::bench::serve(info.c_str(), weft::bench::kMeasures);
}
