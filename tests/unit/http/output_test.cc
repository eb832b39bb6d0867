// SPDX-License-Identifier: MIT
// What a connection does with answers that wait: how much of them there may be, when they leave, and what of them may not.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/http_fixture.h"
#include "support/temporary_directory.h"
#include "weft/http/compression.h"
#include "weft/http/error.h"
#include "weft/testing/virtual_loop.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace std::chrono_literals;
using test::Answer;
using test::parse_answers;
using test::Talk;

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

// Knows what is handed to the kernel, and where that lies.
class Recording final : public Transport {
 public:
  explicit Recording(net::MemoryStream stream) : inner_(std::move(stream)) {}

  Task<Result<PooledBytes>> read() override { return inner_.read(); }
  Task<Result<std::size_t>> write_some(std::span<const net::Part> parts) override {
    ++writes;
    for (const net::Part& part : parts) written.push_back(part.bytes());
    return inner_.write_some(parts);
  }
  Task<Result<std::size_t>> send_file(Descriptor& file, FileRange range) override {
    if (drips.bytes == 0) co_return co_await inner_.send_file(file, range);
    co_await sleep_for(drips.pause);
    co_return range.bytes < Drips::kLast ? range.bytes : drips.bytes;
  }
  Task<Result<void>> shutdown_write() override { return inner_.shutdown_write(); }
  void close() noexcept override { inner_.close(); }
  std::optional<net::Address> peer_address() const noexcept override { return std::nullopt; }
  bool is_encrypted() const noexcept override { return false; }

  // Whether bytes of `text` were written from where they are.
  [[nodiscard]] bool wrote_from(std::string_view text) const {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    for (std::span<const std::byte> part : written) {
      if (part.data() == first && part.size() == text.size()) return true;
    }
    return false;
  }

  int writes = 0;
  std::vector<std::span<const std::byte>> written;
  // Of a file so many bytes at a time, after so long, and the last ones at once. 0: as memory does, which sends none.
  struct Drips {
    static constexpr std::uint64_t kLast = 20'000;
    std::size_t bytes = 0;
    std::chrono::nanoseconds pause{};
  } drips;

 private:
  StreamTransport<net::MemoryStream> inner_;
};

// A connection on a virtual clock. client(stream, transport) is a coroutine, and does as it likes.
using Client = std::function<Task<void>(net::MemoryStream&, Recording&)>;
template <class Loop = weft::testing::VirtualLoop>
void talk(Handler& handler, ServerOptions options, net::MemoryStreamOptions wire, Client client) {
  Loop loop;
  Server server(handler, std::move(options));
  auto both = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams(wire);
    net::MemoryStream mine = std::move(near);
    Recording transport(std::move(far));
    auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
    auto ask = [&]() -> Task<void> {
      co_await client(mine, transport);
      mine.close();
    };
    co_await all_of(serve(), ask());
  };
  run(loop, both());
  EXPECT_EQ(loop.strand_count(), 0u);
}

Task<void> send(net::MemoryStream& stream, std::string text) {
  Result<void> sent = co_await net::write_all(stream, text);
  or_throw(sent);
}

Task<std::string> receive(net::MemoryStream& stream, std::string_view until) {
  std::string all;
  std::array<std::byte, 4096> buffer;
  while (all.find(until) == all.npos) {
    Result<std::size_t> count = co_await stream.read_some(buffer);
    if (!count || *count == 0) break;
    all.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
  co_return all;
}

struct HttpOutput : ::testing::Test {
  HttpOutput() {
    routes.get("/", [](const Request&, Response& response) -> Task<void> {
      response.body("text/plain", "Hello.\n");
      co_return;
    });
  }
  Router routes;
};

// --- How much -----------------------------------------------------------------------------------------

// A handler with a time of its own for each write: what it gives up waits on, and counts.
TEST_F(HttpOutput, WhatIsWrittenAndGivenUpHasABoundAndATime) {
  std::size_t taken = 0;
  std::error_code said;
  TimePoint ended{};
  routes.get("/impatient", [&](const Request&, Response& response) -> Task<void> {
    std::string piece(1000, 'x');
    for (int i = 0; i < 200 && !said; ++i) {
      auto written = co_await timeout(1s, response.write(piece));
      if (written && *written) taken += piece.size();
      if (written && !*written) said = written->error();
      auto flushed = co_await timeout(1s, response.flush());
      if (flushed && !*flushed) said = flushed->error();
    }
    ended = now();
  });
  TimePoint start{};
  talk(routes, {.limits = {.write_timeout = 30s, .output_bytes = 8000}}, {.bytes_max = 1000},
       [&](net::MemoryStream& mine, Recording&) -> Task<void> {
         start = now();
         co_await send(mine, get("/impatient"));
         co_await sleep_for(10min);  // and reads nothing
       });
  EXPECT_EQ(said, Error::write_timeout);
  EXPECT_LE(taken, 8000u + 1000u) << "more waits than Limits::output_bytes";
  EXPECT_GE(ended - start, 30s);
  EXPECT_LE(ended - start, 31s) << "the time began anew with each write";
}

// An answer of 2000 bytes and its head to a peer that takes `bytes` each `pause`, over a wire that holds 100.
struct Slow {
  std::error_code said;
  std::chrono::nanoseconds after{0};  // from the request to the end of the handler
};
Slow read_slowly(Limits limits, std::size_t bytes, std::chrono::nanoseconds pause) {
  Slow result;
  Router routes;
  TimePoint start{};
  routes.get("/", [&](const Request&, Response& response) -> Task<void> {
    start = now();
    Result<void> written{};
    for (int i = 0; i < 20 && written; ++i) {
      written = co_await response.write(std::string(100, 'x'));
      if (written) written = co_await response.flush();
    }
    if (!written) result.said = written.error();
    result.after = now() - start;
  });
  talk(routes, {.limits = limits}, {.bytes_max = 100},
       [&](net::MemoryStream& mine, Recording&) -> Task<void> {
         co_await send(mine, get("/"));
         std::vector<std::byte> buffer(bytes);
         while (true) {
           co_await sleep_for(pause);
           Result<std::size_t> count = co_await mine.read_some(buffer);
           if (!count || *count == 0 || result.after > 0s) co_return;
         }
       });
  return result;
}

// A byte now and then is enough for write_timeout, and would hold the connection for years.
TEST_F(HttpOutput, APeerThatReadsByDripsIsLate) {
  Limits limits{.write_timeout = 30s, .write_rate_min = 10, .write_grace = 60s};
  Slow slow = read_slowly(limits, 1, 29s);
  EXPECT_EQ(slow.said, Error::write_timeout);
  EXPECT_EQ(slow.after, 60s + 100 * 100ms + 200ms)
      << "the grace, and what the wire and two bytes have earned";
  slow = read_slowly(limits, 1, 5s);
  EXPECT_EQ(slow.said, Error::write_timeout);
  EXPECT_EQ(slow.after, 60s + 100 * 100ms + 1400ms) << "of fourteen";
}

TEST_F(HttpOutput, APeerThatReadsAsFastAsItMustIsFastEnough) {
  Limits limits{.write_timeout = 30s, .write_rate_min = 10, .write_grace = 1s};
  EXPECT_EQ(read_slowly(limits, 10, 1s).said, std::error_code());
  EXPECT_EQ(read_slowly(limits, 10, 1100ms).said, Error::write_timeout);
  limits.write_rate_min = 0;
  EXPECT_EQ(read_slowly(limits, 1, 29s).said, std::error_code()) << "no matter how slow";
}

// The same of a file, which the kernel sends.
TEST_F(HttpOutput, AFileThatIsTakenByDripsIsLate) {
  std::error_code said;
  std::chrono::nanoseconds after{0};
  routes.get("/file", [&](const Request&, Response& response) -> Task<void> {
    Descriptor file(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    TimePoint start = now();
    FileRange all{.offset = 0, .bytes = 100'000};
    Result<void> written = co_await response.write_file(file, all);
    if (!written) said = written.error();
    after = now() - start;
  });
  Limits limits{.write_timeout = 30s, .write_rate_min = 10, .write_grace = 60s};
  auto take = [&](std::size_t bytes, std::chrono::nanoseconds pause) {
    talk(routes, {.limits = limits}, {},
         [&](net::MemoryStream& mine, Recording& transport) -> Task<void> {
           transport.drips = {.bytes = bytes, .pause = pause};
           co_await send(mine, get("/file"));
           co_await sleep_for(1h);
         });
  };
  take(1, 29s);
  EXPECT_EQ(said, Error::write_timeout);
  EXPECT_GE(after, 60s);
  EXPECT_LE(after, 80s) << "the grace, and what the head and two bytes have earned";
  said.clear();
  take(1000, 29s);
  EXPECT_EQ(said, std::error_code()) << "what was taken has earned nothing";
  EXPECT_GE(after, 80 * 29s);
}

// What one answer has cost the peer is not the next one's.
TEST_F(HttpOutput, EachRequestBeginsAnew) {
  std::vector<std::error_code> said;
  routes.get("/large", [&](const Request&, Response& response) -> Task<void> {
    Result<void> written = co_await response.write(std::string(2000, 'x'));
    if (written) written = co_await response.flush();
    said.push_back(written ? std::error_code() : written.error());
  });
  Limits limits{.write_timeout = 30s, .write_rate_min = 1000, .write_grace = 20s};
  talk(routes, {.limits = limits}, {.bytes_max = 1000},
       [&](net::MemoryStream& mine, Recording&) -> Task<void> {
         for (int i = 0; i < 3; ++i) {
           co_await send(mine, get("/large"));
           co_await sleep_for(15s);
           co_await receive(mine, "0\r\n\r\n");
         }
       });
  EXPECT_EQ(said, std::vector<std::error_code>(3));
}

// Pauses of the handler are not the peer's: what can be taken at once is.
TEST_F(HttpOutput, APeerThatReadsAgainIsNotLate) {
  std::error_code said;
  routes.get("/pauses", [&](const Request&, Response& response) -> Task<void> {
    Result<void> written = co_await response.write(std::string(5000, 'x'));
    or_throw(written);
    auto flushed = co_await timeout(1s, response.flush());
    EXPECT_FALSE(flushed.has_value());
    co_await sleep_for(1min);
    written = co_await response.flush();
    if (!written) said = written.error();
  });
  std::string answer;
  talk(routes, {}, {.bytes_max = 1000}, [&](net::MemoryStream& mine, Recording&) -> Task<void> {
    co_await send(mine, get("/pauses"));
    co_await sleep_for(30s);
    answer = co_await receive(mine, "0\r\n\r\n");
  });
  EXPECT_EQ(said, std::error_code());
  EXPECT_EQ(parse_answers(answer).size(), 1u);
}

// --- When ---------------------------------------------------------------------------------------------

TEST_F(HttpOutput, PipelinedAnswersAreOneWrite) {
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += kGet;
  bytes += "GET / HTTP/1.1\r\nHost: last\r\nConnection: close\r\n\r\n";
  talk(routes, {}, {}, [&](net::MemoryStream& mine, Recording& transport) -> Task<void> {
    co_await send(mine, bytes);
    std::string answers = co_await receive(mine, "connection: close");
    EXPECT_EQ(parse_answers(answers).size(), 17u);
    EXPECT_EQ(transport.writes, 1);
  });
}

TEST_F(HttpOutput, AFinishedAnswerDoesNotWaitForAHandlerThatDoes) {
  routes.get("/slow", [](const Request&, Response& response) -> Task<void> {
    co_await sleep_for(10s);
    response.body("text/plain", "late");
  });
  routes.get("/throws", [](const Request&, Response&) -> Task<void> {
    co_await sleep_for(1s);
    throw std::runtime_error("on purpose");
  });
  routes.get("/throws/at/once", [](const Request&, Response&) -> Task<void> {
    throw std::runtime_error("on purpose");
    co_return;
  });
  talk(routes, {}, {}, [&](net::MemoryStream& mine, Recording&) -> Task<void> {
    TimePoint start = now();
    co_await send(mine,
                  kGet + kGet + get("/slow") + get("/throws") + get("/throws/at/once") + kGet);
    std::string first = co_await receive(mine, "Hello.\n");
    EXPECT_EQ(parse_answers(first).size(), 2u);
    EXPECT_EQ(now() - start, 0s) << "it was withheld";
    std::string second = co_await receive(mine, "late");
    EXPECT_EQ(now() - start, 10s);
    EXPECT_EQ(parse_answers(second).size(), 1u);
    std::string rest = co_await receive(mine, "Hello.\n");
    EXPECT_EQ(now() - start, 11s);
    auto answers = parse_answers(rest);
    EXPECT_EQ(answers.size(), 3u) << rest;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].status, i < 2 ? 500 : 200);
    }
  });
}

// The peer does not read: the handler behind it goes on, and its answer comes behind.
TEST_F(HttpOutput, AHandlerBehindAnAnswerThatDoesNotLeaveGoesOn) {
  routes.get("/large", [](const Request&, Response& response) -> Task<void> {
    response.body("text/plain", std::string(10'000, 'l'));
    co_return;
  });
  TimePoint ended{};
  routes.get("/slow", [&](const Request&, Response& response) -> Task<void> {
    co_await sleep_for(1s);
    ended = now();
    Result<void> written = co_await response.write("slow and ");
    if (written) written = co_await response.write("steady");
    or_throw(written);
  });
  talk(routes, {}, {.bytes_max = 1000}, [&](net::MemoryStream& mine, Recording&) -> Task<void> {
    TimePoint start = now();
    co_await send(mine, get("/large") + get("/slow") + kGet);
    co_await sleep_for(5s);
    EXPECT_EQ(ended - start, 1s);
    std::string text = co_await receive(mine, "Hello.\n");
    auto answers = parse_answers(text);
    EXPECT_EQ(answers.size(), 3u);
    if (answers.size() == 3) {
      EXPECT_EQ(answers[1].body, "slow and steady");
    }
  });
}

// The loop is stopped in the turn in which the alarm rings. The writer that it starts is cancelled with the rest, and nothing else ends.
TEST_F(HttpOutput, AnAlarmOnALoopThatIsStoppedIsHarmless) {
  weft::testing::VirtualLoop loop;
  bool has_ended = false;
  routes.get("/stops", [&](const Request&, Response&) -> Task<void> {
    struct Ends {
      bool& ended;
      explicit Ends(bool& flag) : ended(flag) {}
      ~Ends() { ended = true; }
    } ends(has_ended);
    loop.stop();
    co_await suspend_forever();
  });
  Server server(routes);
  auto all = [&]() -> Task<void> {
    auto [near, far] = net::memory_streams({.bytes_max = 150});  // less than the answer before it
    net::MemoryStream mine = std::move(near);
    Recording transport(std::move(far));
    co_await send(mine, kGet + get("/stops"));
    co_await server.serve_connection(transport);
  };
  EXPECT_THROW(run(loop, all()), TaskCancelled);
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(loop.strand_count(), 0u);
}

// --- From where ---------------------------------------------------------------------------------------

TEST_F(HttpOutput, LargeBodiesLeaveFromWhereTheyAre) {
  std::string large(300'000, 'x'), filled_in;
  std::string_view whole;
  routes.get("/whole", [&](const Request&, Response& response) -> Task<void> {
    filled_in = large;
    whole = filled_in;
    response.body("text/plain", std::move(filled_in));
    co_return;
  });
  routes.get("/pieces", [&](const Request&, Response& response) -> Task<void> {
    Result<void> written = co_await response.write(large);
    or_throw(written);
  });
  for (const char* path : {"/whole", "/pieces"}) {
    talk(routes, {}, {.bytes_max = 1'000'000},
         [&](net::MemoryStream& mine, Recording& transport) -> Task<void> {
           co_await send(mine, get(path) + kGet);
           co_await receive(mine, "Hello.\n");
           std::string_view where = path == std::string_view("/whole") ? whole : large;
           EXPECT_TRUE(transport.wrote_from(where)) << path;
         });
  }
}

// --- What must not look like an end (H4) ----------------------------------------------------------------

// A file that cannot be read, in the middle of a chunked answer.
TEST_F(HttpOutput, AFileThatCannotBeReadBreaksAChunkedAnswer) {
  std::error_code said;
  routes.get("/file", [&](const Request&, Response& response) -> Task<void> {
    Descriptor directory(UniqueFd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    Result<void> written = co_await response.write("begun");
    or_throw(written);
    FileRange some{.offset = 0, .bytes = 100};
    written = co_await response.write_file(directory, some);
    if (!written) said = written.error();
  });
  std::string text = Talk{}(routes, kGet + get("/file") + kGet);
  EXPECT_EQ(said, std::errc::is_a_directory);
  EXPECT_EQ(text.find("0\r\n\r\n"), text.npos) << text;
  EXPECT_TRUE(text.ends_with("5\r\nbegun\r\n")) << "something follows: " << text;
}

// The same, of one that is given up while it waits for a peer that does not read.
TEST_F(HttpOutput, AFileThatIsGivenUpBreaksAChunkedAnswer) {
  test::TemporaryDirectory directory;
  std::string path = directory.write("file", std::string(5000, 'f'));
  Event given_up_on;
  routes.get("/file", [&](const Request&, Response& response) -> Task<void> {
    Descriptor file(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    for (int i = 0; i < 10; ++i) {
      Result<void> written = co_await response.write(std::string(1000, 'x'));
      or_throw(written);
    }
    FileRange all{.offset = 0, .bytes = 5000};
    auto given_up = co_await timeout(20ms, response.write_file(file, all));
    EXPECT_FALSE(given_up.has_value());
    given_up_on.set();
  });
  std::string text;
  // A virtual loop reads no files.
  talk<EventLoop>(routes, {.limits = {.output_bytes = 10'000}}, {.bytes_max = 100},
                  [&](net::MemoryStream& mine, Recording&) -> Task<void> {
                    co_await send(mine, get("/file") + kGet);
                    co_await given_up_on.wait();
                    text = co_await receive(mine, "Hello.\n");
                  });
  EXPECT_EQ(text.find("0\r\n\r\n"), text.npos);
  EXPECT_EQ(text.find("HTTP/1.1", 1), text.npos) << "something follows";
}

// Cancelled before it has begun: nothing is decided, and the answer may still be filled in. What was answered before stays.
TEST_F(HttpOutput, AWriteThatIsCancelledAtOnceLeavesACodedAnswerOpen) {
  routes.use(Compression());
  std::optional<std::uint64_t> promised;
  std::string text = "All of it, again and again. ";
  for (int i = 0; i < 7; ++i) text += text;
  routes.get("/late", [&](const Request&, Response& response) -> Task<void> {
    response.header("content-type", "text/plain");
    if (promised) response.content_length(*promised);
    CancelHandle self;
    auto write = [&]() -> Task<void> {
      self.cancel();
      Result<void> written = co_await response.write("never");
      ADD_FAILURE() << "it was not cancelled, and has written: " << written.has_value();
    };
    StartedTask<void> writing = write().start_in_current_scope();
    self = writing.cancel_handle();
    Outcome<void> how = co_await writing.outcome();
    EXPECT_TRUE(how.is_cancelled());
    EXPECT_FALSE(response.has_begun());
    if (!promised) response.body("text/plain", text);
  });
  std::string coded = "GET /late HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
  auto answers = parse_answers(Talk{}(routes, kGet + coded + kGet));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[1].field("content-encoding"), "gzip");
  EXPECT_FALSE(answers[1].is_chunked) << "it was decided by what was never written";
  EXPECT_GT(answers[1].body.size(), 50u);

  promised = 1000;
  answers = parse_answers(Talk{}(routes, kGet + coded + kGet));
  ASSERT_GE(answers.size(), 2u);
  EXPECT_EQ(answers[0].body, "Hello.\n");
  EXPECT_EQ(answers[1].status, 500);
}

}  // namespace
