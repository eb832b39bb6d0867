// SPDX-License-Identifier: MIT
#include "weft/http/static_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/drivers.h"
#include "support/http_fixture.h"
#include "support/temporary_directory.h"
#include "weft/http/compression.h"
#include "weft/net/tcp.h"

namespace {

using namespace weft;
using namespace weft::http;
using test::Answer;
using test::parse_answers;
using test::Talk;
using test::TemporaryDirectory;

struct HttpStaticFiles : testing::Test {
  HttpStaticFiles() {
    directory.write("public/page.html", "<p>page</p>");
    directory.write("public/digits.txt", "0123456789");
    directory.write("public/empty", "");
    directory.write("public/sub/index.html", "index");
    directory.write("public/bare/<a>.txt", "a");
    directory.write("public/.secret", "secret");
    directory.write("public/.git/config", "secret");
    directory.write("outside.txt", "outside");
    std::filesystem::create_symlink("../outside.txt", directory.path() / "public/escape.txt");
    std::filesystem::create_symlink("/etc/passwd", directory.path() / "public/absolute.txt");
    std::filesystem::create_symlink("digits.txt", directory.path() / "public/inside.txt");
    ::mkfifo((directory.path() / "public/fifo").c_str(), 0600);
  }
  StaticFiles open(StaticFilesOptions options = {}) {
    return or_throw(StaticFiles::open((directory.path() / "public").string(), std::move(options)));
  }
  Answer ask(Handler& files, std::string_view target, std::string_view fields = "",
             std::string_view method = "GET") {
    std::string bytes(method);
    bytes.append(" ")
        .append(target)
        .append(" HTTP/1.1\r\nHost: a\r\n")
        .append(fields)
        .append("\r\n");
    std::vector<Answer> answers = parse_answers(Talk{}(files, bytes), method == "HEAD");
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? Answer{} : answers[0];
  }
  TemporaryDirectory directory;
};

TEST_F(HttpStaticFiles, AnswersWithAFile) {
  StaticFiles files = open();
  Answer answer = ask(files, "/page.html");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "<p>page</p>");
  EXPECT_EQ(answer.field("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(answer.field("content-length"), "11");
  EXPECT_EQ(answer.field("accept-ranges"), "bytes");
  EXPECT_EQ(ask(files, "/%70age.html").body, "<p>page</p>");
  EXPECT_EQ(ask(files, "/empty").field("content-length"), "0");
  EXPECT_EQ(ask(files, "/inside.txt").body, "0123456789");
  answer = ask(files, "/page.html", "", "HEAD");
  EXPECT_EQ(answer.field("content-length"), "11");
  EXPECT_EQ(ask(files, "/none").status, 404);
  EXPECT_EQ(ask(files, "/page.html/").status, 404);
  EXPECT_EQ(ask(files, "/page.html", "", "POST").status, 405);
}

TEST_F(HttpStaticFiles, NeverLeavesItsDirectory) {
  StaticFiles files = open({.hidden = true});
  for (const char* target :
       {"/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "/sub/../../outside.txt",
        "/escape.txt", "/absolute.txt", "//etc/passwd", "/%2fetc/passwd", "/digits.txt%00.html",
        "/sub/..%2f..%2foutside.txt", "/./../outside.txt"}) {
    Answer answer = ask(files, target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_EQ(answer.body.find("outside"), std::string::npos) << target;
  }
}

TEST_F(HttpStaticFiles, HidesWhatBeginsWithADot) {
  StaticFiles files = open({.lists_directories = true});
  EXPECT_EQ(ask(files, "/.secret").status, 404);
  EXPECT_EQ(ask(files, "/.git/config").status, 404);
  EXPECT_EQ(ask(files, "/%2egit/config").status, 404);
  directory.write("public/sub/.secret", "secret");
  EXPECT_EQ(ask(files, "/sub/.secret").status, 404);
  EXPECT_EQ(ask(files, "/sub/%2esecret").status, 404);
  EXPECT_EQ(ask(files, "/sub%2f.secret").status, 404);
  EXPECT_EQ(ask(files, "/").body.find("secret"), std::string::npos);
  StaticFiles all = open({.hidden = true});
  EXPECT_EQ(ask(all, "/.secret").body, "secret");
}

TEST_F(HttpStaticFiles, DirectoriesHaveAnIndexOrAListing) {
  StaticFiles files = open();
  EXPECT_EQ(ask(files, "/sub/").body, "index");
  Answer answer = ask(files, "/sub?x=1");
  EXPECT_EQ(answer.status, 301);
  EXPECT_EQ(answer.field("location"), "/sub/?x=1");
  EXPECT_EQ(ask(files, "/bare/").status, 404);
  EXPECT_EQ(ask(files, "/fifo").status, 404);
  StaticFiles listing = open({.lists_directories = true});
  answer = ask(listing, "/bare/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("<a href=\"./%3Ca%3E.txt\">&lt;a&gt;.txt</a>"), std::string::npos)
      << answer.body;
}

TEST_F(HttpStaticFiles, AListingSaysWhatIsServedAndTheWayUp) {
  directory.write("public/a b/file", "");
  ASSERT_EQ(::mkfifo((directory.path() / "public/a b/pipe").c_str(), 0600), 0);
  StaticFiles files = open({.lists_directories = true});
  std::string body = ask(files, "/a%20b/").body;
  EXPECT_NE(body.find("<h1>/a b/</h1>"), std::string::npos) << body;
  EXPECT_NE(body.find("<a href=\"../\">../</a>"), std::string::npos) << body;
  EXPECT_NE(body.find("./file"), std::string::npos) << body;
  EXPECT_EQ(body.find("pipe"), std::string::npos) << body;
  body = ask(files, "/").body;
  EXPECT_EQ(body.find("../"), std::string::npos) << body;
  EXPECT_NE(body.find("<a href=\"./a%20b/\">a b/</a>"), std::string::npos) << body;
}

// L15: a directory may be as large as it likes.
TEST_F(HttpStaticFiles, AListingHasAnEnd) {
  for (int i = 0; i < 5; ++i) directory.write("public/many/" + std::to_string(i), "");
  auto listed = [&](std::size_t listed_max) {
    StaticFilesOptions options{.lists_directories = true, .listed_max = listed_max};
    StaticFiles files = open(options);
    std::string body = ask(files, "/many/").body;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = body.find("href=\"./", at)) != body.npos; ++at) ++count;
    return std::pair(count, body.find("and more") != body.npos);
  };
  EXPECT_EQ(listed(3), std::pair(std::size_t{3}, true));
  EXPECT_EQ(listed(5), std::pair(std::size_t{5}, false));
}

// "//host" as a redirection is another server's.
TEST_F(HttpStaticFiles, ARedirectionStaysHere) {
  std::filesystem::create_directories(directory.path() / "public/evil.example");
  StaticFiles files = open();
  Answer answer = ask(files, "//evil.example");
  EXPECT_FALSE(answer.field("location").starts_with("//")) << answer.head;
  Router routes;
  routes.get("//{path...}", files);
  answer = ask(routes, "//evil.example");
  EXPECT_EQ(answer.status, 301);
  EXPECT_EQ(answer.field("location"), "/evil.example/");
}

TEST_F(HttpStaticFiles, Ranges) {
  StaticFiles files = open();
  struct Case {
    const char* range;
    int status;
    const char* body;
    const char* content_range;
  };
  for (const Case& c : {
           Case{"bytes=0-3", 206, "0123", "bytes 0-3/10"},
           Case{"bytes=4-", 206, "456789", "bytes 4-9/10"},
           Case{"bytes=-3", 206, "789", "bytes 7-9/10"},
           Case{"bytes=-99", 206, "0123456789", "bytes 0-9/10"},
           Case{"bytes=9-99", 206, "9", "bytes 9-9/10"},
           Case{"bytes=10-", 416, nullptr, "bytes */10"},
           Case{"bytes=-0", 416, nullptr, "bytes */10"},
           Case{"bytes=5-3", 200, "0123456789", ""},
           Case{"bytes=0-1,3-4", 200, "0123456789", ""},
           Case{"bytes=a-b", 200, "0123456789", ""},
           Case{"bytes=-", 200, "0123456789", ""},
           Case{"lines=1-2", 200, "0123456789", ""},
           Case{"Bytes=0-1", 206, "01", "bytes 0-1/10"},
           Case{"BYTES=-1", 206, "9", "bytes 9-9/10"},
           Case{"bytes", 200, "0123456789", ""},
           Case{"bytes=99999999999999999999-", 416, nullptr, "bytes */10"},
           Case{"bytes=99999999999999999999-99999999999999999999", 416, nullptr, "bytes */10"},
           Case{"bytes=18446744073709551616-18446744073709551617", 416, nullptr, "bytes */10"},
           Case{"bytes=8-99999999999999999999", 206, "89", "bytes 8-9/10"},
           Case{"bytes=-99999999999999999999", 206, "0123456789", "bytes 0-9/10"},
           Case{"bytes=99999999999999999999-3", 200, "0123456789", ""},
           Case{"bytes=99999999999999999999x-", 200, "0123456789", ""},
           Case{"bytes=-99999999999999999999x", 200, "0123456789", ""},
       }) {
    Answer answer = ask(files, "/digits.txt", "Range: " + std::string(c.range) + "\r\n");
    EXPECT_EQ(answer.status, c.status) << c.range;
    if (c.body) {
      EXPECT_EQ(answer.body, c.body) << c.range;
    }
    EXPECT_EQ(answer.field("content-range"), c.content_range) << c.range;
  }
  EXPECT_EQ(ask(files, "/empty", "Range: bytes=0-\r\n").status, 416);
  // RFC 9110, 14.2: of GET only.
  Answer head = ask(files, "/digits.txt", "Range: bytes=0-3\r\n", "HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("content-length"), "10");
}

TEST_F(HttpStaticFiles, Conditions) {
  StaticFiles files = open();
  Answer plain = ask(files, "/digits.txt");
  std::string etag = plain.field("etag"), date = plain.field("last-modified");
  ASSERT_NE(etag, "");
  auto status = [&](const std::string& fields, const char* method = "GET") {
    return ask(files, "/digits.txt", fields, method).status;
  };
  const std::string past = "Sun, 06 Nov 1994 08:49:37 GMT",
                    future = "Fri, 31 Dec 2100 23:59:59 GMT";
  EXPECT_EQ(status("If-None-Match: " + etag + "\r\n"), 304);
  EXPECT_EQ(status("If-None-Match: W/" + etag + "\r\n"), 304);
  EXPECT_EQ(status("If-None-Match: \"x\", " + etag + "\r\n"), 304);
  EXPECT_EQ(status("If-None-Match: *\r\n"), 304);
  EXPECT_EQ(status("If-None-Match: \"x\"\r\n"), 200);
  EXPECT_EQ(status("If-None-Match: \"x\"\r\nIf-Modified-Since: " + future + "\r\n"),
            200);  // the tag decides
  // RFC 9110, 5.3: several lines are one list.
  EXPECT_EQ(status("If-None-Match: \"x\"\r\nIf-None-Match: " + etag + "\r\n"), 304);
  EXPECT_EQ(status("If-None-Match: " + etag + "\r\nIf-None-Match: \"x\"\r\n"), 304);
  EXPECT_EQ(status("If-None-Match: \"x\"\r\nIf-None-Match: \"y\"\r\n"), 200);
  EXPECT_EQ(status("If-Match: \"x\"\r\nIf-Match: " + etag + "\r\n"), 200);
  EXPECT_EQ(status("If-Match: " + etag + "\r\nIf-Match: \"x\"\r\n"), 200);
  EXPECT_EQ(status("If-Match: \"x\"\r\nIf-Match: \"y\"\r\n"), 412);
  EXPECT_EQ(status("If-Modified-Since: " + date + "\r\n"), 304);
  EXPECT_EQ(status("If-Modified-Since: " + past + "\r\n"), 200);
  EXPECT_EQ(status("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n"), 200);
  EXPECT_EQ(status("If-Modified-Since: yesterday\r\n"), 200);
  EXPECT_EQ(status("If-Match: " + etag + "\r\n"), 200);
  EXPECT_EQ(status("If-Match: W/" + etag + "\r\n"), 412);
  EXPECT_EQ(status("If-Match: \"x\"\r\n"), 412);
  EXPECT_EQ(status("If-Unmodified-Since: " + past + "\r\n"), 412);
  EXPECT_EQ(status("If-Unmodified-Since: " + future + "\r\n"), 200);
  EXPECT_EQ(status("If-Unmodified-Since: " + date + "\r\n"), 200);
  EXPECT_EQ(status("Range: bytes=0-1\r\nIf-Range: " + etag + "\r\n"), 206);
  EXPECT_EQ(status("Range: bytes=0-1\r\nIf-Range: \"x\"\r\n"), 200);
  EXPECT_EQ(status("Range: bytes=0-1\r\nIf-Range: " + date + "\r\n"), 206);
  EXPECT_EQ(status("Range: bytes=0-1\r\nIf-Range: " + past + "\r\n"), 200);
  Answer unchanged = ask(files, "/digits.txt", "If-None-Match: " + etag + "\r\n");
  EXPECT_EQ(unchanged.field("etag"), etag);
  EXPECT_EQ(unchanged.field("content-length"), "");
  directory.write("public/digits.txt", "0123456789!");
  EXPECT_EQ(status("If-None-Match: " + etag + "\r\n"), 200);
}

TEST_F(HttpStaticFiles, OpenSaysWhatIsWrong) {
  EXPECT_EQ(StaticFiles::open((directory.path() / "nowhere").string()).error(),
            std::errc::no_such_file_or_directory);
  EXPECT_EQ(StaticFiles::open((directory.path() / "outside.txt").string()).error(),
            std::errc::not_a_directory);
}

// Over a real socket, by sendfile().
class LargeFiles : public HttpStaticFiles, public testing::WithParamInterface<Driver> {};

TEST_P(LargeFiles, AreWholeOnEveryDriver) {
  std::string large(3'000'000, ' ');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i * 7 % 26);
  directory.write("public/large", large);
  StaticFiles files = open();
  EventLoop loop({.driver = GetParam()});
  Server server(files);
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::Address where = or_throw(listener.local_address());
  std::string text;
  auto client = [&](Nursery& nursery) -> Task<NurseryEnd> {
    nursery.start(server.serve(listener));
    Result<net::TcpStream> connected = co_await net::TcpStream::connect(where);
    net::TcpStream stream = or_throw(std::move(connected));
    std::string_view question =
        "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
        "GET /large HTTP/1.1\r\nHost: a\r\nRange: bytes=1000000-1999999\r\n\r\n"
        "GET /digits.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    Result<void> sent = co_await net::write_all(stream, question);
    or_throw(sent);
    std::vector<std::byte> buffer(100'000);
    while (true) {
      Result<std::size_t> count = co_await stream.read_some(buffer);
      if (or_throw(count) == 0) break;
      text.append(reinterpret_cast<const char*>(buffer.data()), *count);
    }
    co_return cancel;
  };
  auto body = [&]() -> Task<void> { co_await with_nursery(client); };
  run(loop, body());
  auto answers = parse_answers(text);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(answers[0].body == large);
  EXPECT_TRUE(answers[1].body == large.substr(1'000'000, 1'000'000));
  EXPECT_EQ(answers[2].body, "0123456789");
}

// Also on io_uring, whose sockets block: nobody else on the loop may wait for this peer.
TEST_P(LargeFiles, AreSentByTheKernelWithoutBlockingTheLoop) {
  std::string large(8'000'000, 'x');  // more than the kernel takes for a peer that does not read
  directory.write("public/large", large);
  EventLoop loop({.driver = GetParam()});
  net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
  net::Address where = or_throw(listener.local_address());
  auto body = [&]() -> Task<void> {
    Result<net::TcpStream> connected = co_await net::TcpStream::connect(where);
    net::TcpStream peer = or_throw(std::move(connected));
    Result<net::TcpStream> accepted = co_await listener.accept();
    net::TcpStream stream = or_throw(std::move(accepted));
    Descriptor file(UniqueFd(::open((directory.path() / "public/large").c_str(), O_RDONLY)));
    std::uint64_t sent = 0, received = 0;
    auto send = [&]() -> Task<void> {
      while (sent < large.size()) {
        FileRange rest{.offset = sent, .bytes = large.size() - sent};
        Result<std::size_t> count =
            co_await http::detail::send_file(stream.descriptor(), file, rest);
        sent += or_throw(count);
      }
    };
    auto read = [&]() -> Task<void> {
      while (sent == 0) co_await yield();
      EXPECT_LT(sent, large.size());
      std::vector<std::byte> buffer(1'000'000);
      while (received < large.size()) {
        Result<std::size_t> count = co_await peer.read_some(buffer);
        received += or_throw(count);
      }
    };
    co_await all_of(send(), read());
    EXPECT_EQ(sent, large.size());
  };
  run(loop, body());
}

INSTANTIATE_TEST_SUITE_P(Drivers, LargeFiles, testing::ValuesIn(test::drivers_here()),
                         test::driver_name);

// --- Codings ----------------------------------------------------------------------------------------

void make_older(const std::filesystem::path& file) {
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(file) - std::chrono::seconds(10));
}

TEST_F(HttpStaticFiles, SendsWhatIsCompressedAlready) {
  directory.write("public/page.html.gz", "gzip of page");
  directory.write("public/page.html.br", "brotli of page");
  directory.write("public/sub/index.html.gz", "gzip of index");
  StaticFiles files = open();
  Answer answer = ask(files, "/page.html", "Accept-Encoding: gzip, br\r\n");
  EXPECT_EQ(answer.body, "brotli of page");
  EXPECT_EQ(answer.field("content-encoding"), "br");
  EXPECT_EQ(answer.field("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(answer.field("vary"), "accept-encoding");
  EXPECT_EQ(answer.field("accept-ranges"), "bytes");
  std::string brotli_etag = answer.field("etag");
  EXPECT_TRUE(brotli_etag.starts_with('"'));

  answer = ask(files, "/page.html", "Accept-Encoding: gzip, br;q=0.5\r\n");
  EXPECT_EQ(answer.body, "gzip of page");
  EXPECT_NE(answer.field("etag"), brotli_etag);
  answer = ask(files, "/page.html");
  EXPECT_EQ(answer.body, "<p>page</p>");
  EXPECT_EQ(answer.field("content-encoding"), "");
  EXPECT_EQ(answer.field("vary"), "accept-encoding");
  EXPECT_EQ(ask(files, "/sub/", "Accept-Encoding: gzip, br\r\n").body, "gzip of index");
  answer = ask(files, "/page.html", "Accept-Encoding: br\r\n", "HEAD");
  EXPECT_EQ(answer.field("content-encoding"), "br");
  EXPECT_EQ(answer.field("content-length"), "14");

  // It has conditions and ranges of its own.
  std::string accept = "Accept-Encoding: br\r\n";
  answer = ask(files, "/page.html", accept + "If-None-Match: " + brotli_etag + "\r\n");
  EXPECT_EQ(answer.status, 304);
  EXPECT_EQ(answer.field("content-encoding"), "");
  answer = ask(files, "/page.html", accept + "Range: bytes=0-5\r\n");
  EXPECT_EQ(answer.status, 206);
  EXPECT_EQ(answer.body, "brotli");
  EXPECT_EQ(answer.field("content-encoding"), "br");
  answer = ask(files, "/page.html", accept + "Range: bytes=99-\r\n");
  EXPECT_EQ(answer.status, 416);
  EXPECT_EQ(answer.field("content-encoding"), "") << "its text is plain";
}

TEST_F(HttpStaticFiles, WhatIsStaleOrNoFileIsNotSent) {
  StaticFiles files = open();
  std::string accept = "Accept-Encoding: gzip, br\r\n";
  directory.write("public/page.html.gz", "stale");
  make_older(directory.path() / "public/page.html.gz");
  std::filesystem::create_directories(directory.path() / "public/page.html.br");
  EXPECT_EQ(ask(files, "/page.html", accept).body, "<p>page</p>");
  // Nor does it leave the directory.
  std::filesystem::create_symlink("../outside.txt", directory.path() / "public/digits.txt.br");
  EXPECT_EQ(ask(files, "/digits.txt", accept).body, "0123456789");
  // What is not compressible is not looked for, and neither is anything if it is switched off.
  directory.write("public/picture.png", "png");
  directory.write("public/picture.png.gz", "gzip");
  EXPECT_EQ(ask(files, "/picture.png", accept).body, "png");
  EXPECT_EQ(ask(files, "/picture.png", accept).field("vary"), "");
  StaticFiles plain = open({.precompressed = false});
  directory.write("public/new.txt", "new");
  directory.write("public/new.txt.gz", "gzip");
  EXPECT_EQ(ask(files, "/new.txt", accept).body, "gzip");
  EXPECT_EQ(ask(plain, "/new.txt", accept).body, "new");
}

TEST_F(HttpStaticFiles, AreCompressedByTheMiddleware) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "line " + std::to_string(i) + "\n";
  directory.write("public/large.txt", text);
  directory.write("public/page.html.gz", "gzip of page");
  StaticFiles files = open();
  Router routes;
  routes.use(Compression());
  routes.get("/{path...}", files);
  Answer answer = ask(routes, "/large.txt", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(answer.field("content-encoding"), "gzip");
  EXPECT_TRUE(answer.is_chunked);
  EXPECT_TRUE(answer.field("etag").starts_with("W/\"")) << answer.field("etag");
  EXPECT_EQ(answer.field("accept-ranges"), "");
  EXPECT_LT(answer.body.size(), text.size() / 2);
  std::string etag = answer.field("etag");
  answer = ask(routes, "/large.txt", "Accept-Encoding: gzip\r\nIf-None-Match: " + etag + "\r\n");
  EXPECT_EQ(answer.status, 304);
  EXPECT_EQ(answer.field("etag"), etag);
  answer = ask(routes, "/large.txt", "Accept-Encoding: gzip\r\n", "HEAD");
  EXPECT_EQ(answer.field("content-encoding"), "gzip");
  EXPECT_EQ(answer.field("content-length"), "");
  answer = ask(routes, "/large.txt", "Accept-Encoding: gzip\r\nRange: bytes=0-9999\r\n");
  EXPECT_EQ(answer.status, 206);
  EXPECT_EQ(answer.body, text.substr(0, 10'000));
  answer = ask(routes, "/page.html", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(answer.body, "gzip of page") << "once is enough";
}

}  // namespace
