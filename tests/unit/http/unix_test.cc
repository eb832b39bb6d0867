// SPDX-License-Identifier: MIT
// HTTP over Unix sockets: files leave by the kernel, and TLS is the same as over TCP.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "support/http_fixture.h"
#include "support/stream_text.h"
#include "support/temporary_directory.h"
#include "support/tls_engines.h"
#include "weft/net/unix.h"
#include "weft/tls/stream.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;

std::string contents() {
  std::string text(300'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 / 3);
  return text;
}

Descriptor open_file(const std::string& path) {
  return Descriptor(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
}

template <class S>
Task<std::string> ask(S& stream) {
  co_await test::write_text(stream, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  co_return co_await test::read_to_end(stream);
}

// A server of one file at a path, and somebody who asks it.
struct HttpUnix : ::testing::Test {
  TemporaryDirectory scratch;
  std::string path = scratch.file("socket");
  std::string file_path = scratch.write("file", contents());

  // `visit`, a coroutine, has the stream that it connected.
  template <class Visit>
  void serve(ServerOptions options, Visit visit) {
    Router routes;
    auto send = [this](const Request&, Response& response) -> Task<void> {
      Descriptor file = open_file(file_path);
      FileRange all{.offset = 0, .bytes = contents().size()};
      Result<void> written = co_await response.write_file(file, all);
      or_throw(written);
    };
    routes.get("/", send);
    EventLoop loop;
    Server server(routes, std::move(options));
    net::UnixListener listener = or_throw(net::UnixListener::listen(path));
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      nursery.start(server.serve(listener));
      Result<net::UnixStream> connected = co_await net::UnixStream::connect(path);
      co_await visit(or_throw(std::move(connected)));
      co_return cancel;
    };
    auto root = [&]() -> Task<void> { co_await with_nursery(body); };
    run(loop, root());
    EXPECT_EQ(server.connections(), 0u);
  }
};

void expect_file(const std::string& text) {
  std::vector<Answer> answers = parse_answers(text);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].status, 200);
  EXPECT_TRUE(answers[0].body == contents());
}

TEST_F(HttpUnix, AFileIsServed) {
  serve({}, [](net::UnixStream stream) -> Task<void> {
    std::string text = co_await ask(stream);
    expect_file(text);
  });
}

TEST_F(HttpUnix, AFileIsServedByTls) {
  ServerOptions options;
  options.tls = server_context();
  serve(std::move(options), [](net::UnixStream plain) -> Task<void> {
    tls::ClientContext trusts = client_context();
    auto connected = co_await tls::connect(std::move(plain), trusts, "localhost");
    auto stream = or_throw(std::move(connected));
    std::string text = co_await ask(stream);
    expect_file(text);
  });
}

// Not by a copy that nobody would notice.
TEST_F(HttpUnix, TheKernelSendsTheFile) {
  EventLoop loop;
  auto body = [&]() -> Task<void> {
    auto [near, far] = or_throw(net::UnixStream::pair());
    net::UnixStream mine = std::move(near);
    StreamTransport transport(std::move(far));
    Descriptor file = open_file(file_path);
    FileRange some{.offset = 1000, .bytes = 500};
    Result<std::size_t> count = co_await transport.send_file(file, some);
    EXPECT_EQ(or_throw(count), 500u);
    std::string text(500, '\0');
    Result<void> got = co_await net::read_exactly(mine, std::as_writable_bytes(std::span(text)));
    or_throw(got);
    EXPECT_EQ(text, contents().substr(1000, 500));
  };
  run(loop, body());
}

}  // namespace
