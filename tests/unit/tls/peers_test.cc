// SPDX-License-Identifier: MIT
// Other people's TLS: openssl's client and server, and curl, as processes of their own on the loopback interface.
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/loop_fixture.h"
#include "support/temporary_directory.h"
#include "support/tls_engines.h"
#include "weft/net/buffered.h"
#include "weft/net/tcp.h"
#include "weft/tls/stream.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;
using Tls = tls::Stream<net::TcpStream>;

constexpr auto kTooLong = kSanitized ? 100s : 30s;

template <class Body>
void on_loop(Body body) {
  EventLoop loop;
  auto root = [&]() -> Task<bool> {
    auto ended = co_await timeout(kTooLong, body());
    co_return ended.has_value();
  };
  EXPECT_TRUE(run(loop, root())) << "it hangs";
}

// A server of ours for one connection, and where it listens.
class Service {
 public:
  explicit Service(tls::ServerOptions options = server_options())
      : context_(server_context(std::move(options))),
        listener_(or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)))) {}

  [[nodiscard]] std::string port() {
    return std::to_string(or_throw(listener_.local_address()).port());
  }
  [[nodiscard]] Task<Result<Tls>> accept(std::string* why = nullptr) {
    Result<net::TcpStream> tcp = co_await listener_.accept();
    co_return co_await tls::accept(or_throw(std::move(tcp)), context_, why);
  }

 private:
  tls::ServerContext context_;
  net::TcpListener listener_;
};

Task<Finished> finished(std::string program, std::vector<std::string> arguments,
                        std::string input = "") {
  ProcessOptions options(std::move(program), std::move(arguments));
  RunProcessOptions how;
  how.input = std::move(input);
  Result<Finished> done = co_await run_process(std::move(options), std::move(how));
  co_return or_throw(std::move(done));
}

// Answers one line with itself, in capitals.
Task<void> answer_line(Service& service, std::string* agreed = nullptr) {
  Result<Tls> accepted = co_await service.accept();
  Tls stream = or_throw(std::move(accepted));
  if (agreed) *agreed = stream.alpn();
  net::BufferedReader reader(stream);
  auto line = co_await reader.read_until("\n");
  std::string text(reinterpret_cast<const char*>(or_throw(line).data()), line->size());
  for (char& each : text) each = static_cast<char>(std::toupper(each));
  Result<void> written = co_await net::write_all(stream, text);
  or_throw(written);
  Result<void> ended = co_await stream.shutdown_write();
  or_throw(ended);
}

class TlsPeers : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Versions, TlsPeers, ::testing::Values("1_2", "1_3"),
                         [](const auto& info) { return std::string("Tls") + info.param; });

TEST_P(TlsPeers, OpensslAsAClient) {
  on_loop([&]() -> Task<void> {
    TemporaryDirectory files;
    std::string roots = files.write("roots", authority().pem());
    tls::ServerOptions options = server_options();
    options.alpn = {"shout"};
    Service service(options);
    std::vector<std::string> arguments{"s_client",
                                       "-connect",
                                       "127.0.0.1:" + service.port(),
                                       "-CAfile",
                                       roots,
                                       "-verify_return_error",
                                       "-servername",
                                       "localhost",
                                       "-verify_hostname",
                                       "localhost",
                                       "-alpn",
                                       "shout",
                                       "-quiet",
                                       std::string("-tls") + GetParam()};
    std::string agreed;
    auto [client, served] =
        co_await all_of(finished("openssl", arguments, "hello\n"), answer_line(service, &agreed));
    EXPECT_EQ(client.out, "HELLO\n") << client.err;
    EXPECT_EQ(agreed, "shout");
  });
}

TEST_P(TlsPeers, OpensslAsAServer) {
  on_loop([&]() -> Task<void> {
    TemporaryDirectory files;
    std::string certificate = files.write("certificate", server_identity().certificate_pem);
    std::string key = files.write("key", server_identity().key_pem);
    ProcessOptions options(
        "openssl", {"s_server", "-accept", "127.0.0.1:0", "-rev", "-cert", certificate, "-key", key,
                    "-alpn", "rev", std::string("-tls") + GetParam()});
    options.out = Redirect::pipe();
    options.err = Redirect::null();
    options.in = Redirect::null();
    Process server = or_throw(Process::spawn(std::move(options)));
    std::string said;
    std::array<std::byte, 256> buffer;
    constexpr std::string_view kBefore = "ACCEPT 127.0.0.1:";
    while (said.find(kBefore) == said.npos || !said.ends_with('\n')) {
      Result<std::size_t> count = co_await server.out.read(buffer);
      if (or_throw(count) == 0) throw std::runtime_error("openssl s_server said: " + said);
      said.append(reinterpret_cast<const char*>(buffer.data()), *count);
    }
    std::uint16_t port = 0;
    const char* digits = said.data() + said.find(kBefore) + kBefore.size();
    std::from_chars(digits, said.data() + said.size(), port);

    tls::ClientOptions client = client_options();
    client.alpn = {"rev"};
    tls::ClientContext context = client_context(client);
    for (int i = 0; i < 3; ++i) {
      Result<net::TcpStream> tcp =
          co_await net::TcpStream::connect(net::Address::loopback_v4(port));
      std::string why;
      Result<Tls> connected =
          co_await tls::connect(or_throw(std::move(tcp)), context, "localhost", &why);
      EXPECT_TRUE(connected.has_value()) << why;
      Tls stream = or_throw(std::move(connected));
      EXPECT_EQ(stream.alpn(), "rev");
      EXPECT_EQ(stream.is_resumed(), i > 0) << "its tickets are good";
      net::BufferedReader reader(stream);
      for (std::string_view line : {"abc\n", "a longer line\n"}) {
        Result<void> written = co_await net::write_all(stream, line);
        or_throw(written);
        auto back = co_await reader.read_until("\n");
        std::string text(reinterpret_cast<const char*>(or_throw(back).data()), back->size());
        reader.consume(text.size());
        std::string expected(line.substr(0, line.size() - 1));
        EXPECT_EQ(text, std::string(expected.rbegin(), expected.rend()) + "\n");
      }
      Result<void> ended = co_await stream.shutdown_write();
      or_throw(ended);
    }
    Result<ExitStatus> status = co_await server.terminate();
    EXPECT_TRUE(status.has_value());
  });
}

// One request, one answer.
Task<std::string> answer_request(Service& service) {
  Result<Tls> accepted = co_await service.accept();
  if (!accepted) co_return accepted.error().message();
  Tls stream = std::move(*accepted);
  net::BufferedReader reader(stream);
  auto request = co_await reader.read_until("\r\n\r\n");
  if (!request) co_return request.error().message();
  std::string body(100'000, 'b');
  // Without a length: the end of the stream is the end of the body, if close_notify says so.
  std::string head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
  std::array<net::Part, 2> parts{net::Part(head), net::Part(body)};
  std::span<net::Part> rest = parts;
  Result<void> written = co_await net::write_all(stream, rest);
  or_throw(written);
  Result<void> ended = co_await stream.shutdown_write();
  or_throw(ended);
  std::optional<tls::PeerCertificate> who = stream.peer_certificate();
  co_return who ? who->subject : "nobody";
}

std::vector<std::string> curl(const std::string& port, std::vector<std::string> more) {
  std::vector<std::string> arguments{"--silent", "--show-error", "--noproxy",
                                     "*",        "--max-time",   "20"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back("https://localhost:" + port + "/");
  return arguments;
}

TEST_P(TlsPeers, Curl) {
  on_loop([&]() -> Task<void> {
    TemporaryDirectory files;
    std::string roots = files.write("roots", authority().pem());
    Service service;
    std::string version(GetParam());
    version[1] = '.';
    std::vector<std::string> arguments = curl(
        service.port(), {"--ipv4", "--cacert", roots, "--tlsv" + version, "--tls-max", version});
    auto [client, who] = co_await all_of(finished("curl", arguments), answer_request(service));
    EXPECT_EQ(client.out.size(), 100'000u) << client.err;
    EXPECT_EQ(client.status.code(), 0) << client.err << " (56 would be truncation)";
    EXPECT_EQ(who, "nobody");
  });
}

TEST(TlsPeersCurl, WithACertificateOfItsOwn) {
  on_loop([&]() -> Task<void> {
    tls::Identity alice = authority().issue("alice", "");
    TemporaryDirectory files;
    std::string roots = files.write("roots", authority().pem());
    std::string certificate = files.write("certificate", alice.certificate_pem);
    std::string key = files.write("key", alice.key_pem);
    tls::ServerOptions options = server_options();
    options.client_certificate = tls::ClientCertificate::required;
    options.client_roots_pem = authority().pem();
    Service service(options);
    std::vector<std::string> arguments =
        curl(service.port(), {"--ipv4", "--cacert", roots, "--cert", certificate, "--key", key});
    auto [client, who] = co_await all_of(finished("curl", arguments), answer_request(service));
    EXPECT_EQ(client.out.size(), 100'000u) << client.err;
    EXPECT_EQ(who, "CN=alice");
    arguments = curl(service.port(), {"--ipv4", "--cacert", roots});
    auto [refused, why] = co_await all_of(finished("curl", arguments), answer_request(service));
    EXPECT_NE(refused.status.code(), 0);
    EXPECT_EQ(why, make_error_code(tls::Error::certificate_missing).message());
  });
}

TEST(TlsPeersCurl, DoesNotAcceptWhatItShouldNot) {
  on_loop([&]() -> Task<void> {
    Service service;
    std::vector<std::string> arguments = curl(service.port(), {"--ipv4"});
    auto [client, why] = co_await all_of(finished("curl", arguments), answer_request(service));
    EXPECT_EQ(client.status.code(), 60)
        << "curl(1): the peer's certificate cannot be authenticated";
    EXPECT_EQ(why, make_error_code(tls::Error::own_certificate_refused).message());
  });
}

TEST(TlsPeersOpenssl, HearsOfAProtocolThatIsNotSpoken) {
  on_loop([&]() -> Task<void> {
    tls::ServerOptions options = server_options();
    options.alpn = {"h2"};
    Service service(options);
    std::vector<std::string> arguments{"s_client", "-connect", "127.0.0.1:" + service.port(),
                                       "-alpn", "ftp"};
    auto accept = [&]() -> Task<std::error_code> {
      Result<Tls> accepted = co_await service.accept();
      co_return accepted ? std::error_code() : accepted.error();
    };
    auto [client, error] = co_await all_of(finished("openssl", arguments), accept());
    EXPECT_EQ(error, tls::Error::no_application_protocol);
    EXPECT_NE(client.err.find("no application protocol"), client.err.npos) << client.err;
  });
}

}  // namespace
