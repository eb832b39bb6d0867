// SPDX-License-Identifier: MIT
// A handler's reads and writes are cancelled at random and taken up again: no byte of a body is lost, and none comes twice (L5).
//
// The reads are of uploads with a length and in chunks; the writes are of up to 16 KiB, which are whole or not at all (what is longer
// breaks the answer off: output_test.cc). Several requests on one connection, so that a body that was left in disorder would
// be seen in the next.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/stream_harness.h"
#include "conformance/stream_suite.h"
#include "support/http_fixture.h"
#include "weft/testing/virtual_loop.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using harness::Disturber;

constexpr std::size_t kBodyBytes = 60'000;
constexpr std::size_t kWriteBytesMax = 16 * 1024;
constexpr unsigned kRequests = 3;
constexpr unsigned kSeeds = 8;

// The body of the n-th request, and of its answer.
std::string upload(unsigned seed, unsigned number) {
  return harness::pseudo_random(seed * 100 + number, kBodyBytes);
}
std::string download(unsigned seed, unsigned number) {
  return harness::pseudo_random(seed * 100 + 50 + number, kBodyBytes);
}

// Reads it all, and answers with another body.
class Examiner final : public Handler {
 public:
  Examiner(unsigned seed, bool in_chunks) : seed_(seed), in_chunks_(in_chunks), by_(seed) {}

  Task<void> handle_request(const Request& request, Response& response, Connection&) override {
    unsigned number = number_++;
    std::string got = co_await read_body(request);
    EXPECT_TRUE(got == upload(seed_, number)) << "request " << number << ", seed " << seed_;
    std::string answer = download(seed_, number);
    if (!in_chunks_) response.content_length(answer.size());
    co_await write_body(response, answer);
  }
  [[nodiscard]] unsigned requests() const { return number_; }
  [[nodiscard]] unsigned cancelled_reads() const { return cancelled_reads_; }
  [[nodiscard]] unsigned cancelled_writes() const { return by_.cancelled() - cancelled_reads_; }

 private:
  Task<std::string> read_body(const Request& request) {
    const unsigned before = by_.cancelled();
    std::string text;
    std::vector<std::byte> buffer(3000);
    while (true) {
      std::span<std::byte> room = std::span(buffer).first(1 + by_.below(buffer.size()));
      auto count = co_await by_.disturb(request.body().read_some(room));
      if (!count) continue;
      if (or_throw(*count) == 0) break;
      harness::append(text, room.first(**count));
    }
    cancelled_reads_ += by_.cancelled() - before;
    co_return text;
  }
  Task<void> write_body(Response& response, std::string_view rest) {
    while (!rest.empty()) {
      std::size_t most = by_.below(4) == 0 ? kWriteBytesMax : 1000;
      std::string_view piece = rest.substr(0, 1 + by_.below(most));
      auto written = co_await by_.disturb(response.write(piece));
      if (written) {
        or_throw(*written);
        rest.remove_prefix(piece.size());
      }
      if (by_.below(3) != 0) continue;
      auto flushed = co_await by_.disturb(response.flush());
      if (flushed) or_throw(*flushed);
    }
  }

  unsigned seed_;
  bool in_chunks_;
  Disturber by_;
  unsigned number_ = 0;
  unsigned cancelled_reads_ = 0;
};

std::string hex(std::size_t number) {
  std::string text;
  for (; number > 0; number /= 16) text.insert(text.begin(), "0123456789abcdef"[number % 16]);
  return text;
}

std::string request_with(std::string_view body, bool in_chunks, bool is_last, Disturber& by) {
  std::string text = "POST / HTTP/1.1\r\nHost: a\r\n";
  if (is_last) text += "Connection: close\r\n";
  if (!in_chunks) {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    return text.append(body);
  }
  text += "Transfer-Encoding: chunked\r\n\r\n";
  while (!body.empty()) {
    std::string_view chunk = body.substr(0, 1 + by.below(5000));
    text.append(hex(chunk.size())).append("\r\n").append(chunk).append("\r\n");
    body.remove_prefix(chunk.size());
  }
  return text + "0\r\n\r\n";
}

// In pieces, and others run in between.
template <class S>
Task<void> send_at_leisure(S& stream, std::string_view rest, Disturber& by) {
  while (!rest.empty()) {
    std::string_view piece = rest.substr(0, 1 + by.below(4000));
    Result<void> written = co_await net::write_all(stream, piece);
    or_throw(written);
    rest.remove_prefix(piece.size());
    co_await by.rest();
  }
}

template <class S>
Task<std::string> receive_at_leisure(S& stream, Disturber& by) {
  std::string text;
  std::vector<std::byte> buffer(4000);
  while (true) {
    std::span<std::byte> room = std::span(buffer).first(1 + by.below(buffer.size()));
    Result<std::size_t> count = co_await stream.read_some(room);
    if (!count || *count == 0) co_return text;
    harness::append(text, room.first(*count));
    co_await by.rest();
  }
}

template <class Kind>
class HttpCancel : public ::testing::Test {
 protected:
  void converse(unsigned seed, bool in_chunks) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    weft::testing::VirtualLoop loop;
    Examiner handler(seed, in_chunks);
    ServerOptions options;
    options.limits.output_bytes = 3000;  // so that writes have to wait
    Server server(handler, options);
    Disturber sends(~seed), receives(seed + 1000);
    std::string requests, answered;
    for (unsigned i = 0; i < kRequests; ++i) {
      requests += request_with(upload(seed, i), in_chunks, i + 1 == kRequests, sends);
    }
    auto talk = [&]() -> Task<void> {
      auto both = co_await Kind::connect();
      typename Kind::Stream mine = std::move(both.first);
      StreamTransport<typename Kind::Stream> transport(std::move(both.second));
      auto serve = [&]() -> Task<void> { co_await server.serve_connection(transport); };
      auto receive = [&]() -> Task<void> {
        answered = co_await receive_at_leisure(mine, receives);
      };
      co_await all_of(serve(), send_at_leisure(mine, requests, sends), receive());
    };
    run(loop, talk());
    std::vector<Answer> answers = parse_answers(answered);
    ASSERT_EQ(answers.size(), kRequests);
    for (unsigned i = 0; i < kRequests; ++i) {
      EXPECT_EQ(answers[i].status, 200);
      EXPECT_EQ(answers[i].is_chunked, in_chunks);
      EXPECT_TRUE(answers[i].body == download(seed, i)) << "answer " << i;
    }
    EXPECT_EQ(handler.requests(), kRequests);
    cancelled_reads_ += handler.cancelled_reads();
    cancelled_writes_ += handler.cancelled_writes();
  }
  void TearDown() override {
    EXPECT_GT(cancelled_reads_, 5 * kSeeds) << "the test did not test";
    EXPECT_GT(cancelled_writes_, 5 * kSeeds) << "the test did not test";
  }

 private:
  unsigned cancelled_reads_ = 0, cancelled_writes_ = 0;
};

#ifdef WEFT_HAS_TLS
using Kinds =
    ::testing::Types<OverMemory, OverTornMemory, OverTls<OverMemory>, OverTls<OverTornRecords>>;
#else
using Kinds = ::testing::Types<OverMemory, OverTornMemory>;
#endif
TYPED_TEST_SUITE(HttpCancel, Kinds);

TYPED_TEST(HttpCancel, BodiesWithALengthLoseNothing) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) this->converse(seed, false);
}
TYPED_TEST(HttpCancel, BodiesInChunksLoseNothing) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) this->converse(seed, true);
}

}  // namespace
