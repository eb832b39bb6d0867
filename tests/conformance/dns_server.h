// SPDX-License-Identifier: MIT
#pragma once
// A small name server, over UDP and TCP, for tests of resolve(): what it says is up to the test.
//
//     DnsServer dns([](const DnsQuestion& question) -> DnsAnswer { … });
//     co_await any_of(dns.run(), body());
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "driver_fixture.h"
#include "weft/net/serve.h"
#include "weft/net/serve_datagrams.h"
#include "weft/net/tcp.h"
#include "weft/net/udp.h"

namespace weft::test {

struct DnsQuestion {
  std::string name;
  bool v6 = false;
  bool over_tcp = false;
};

struct DnsAnswer {
  std::vector<net::Address> addresses{};
  int code = 0;            // RFC 1035, section 4.1.1: 2 failed, 3 no such name
  bool truncated = false;  // ask again over TCP
  bool silent = false;     // says nothing
  std::string instead{};   // these bytes after the question's number, and nothing that makes sense
  std::chrono::milliseconds delay{0};
};

class DnsServer {
 public:
  using Behaviour = std::function<DnsAnswer(const DnsQuestion&)>;

  explicit DnsServer(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
    // One number for both protocols; somebody may have the one that was free over UDP.
    for (int i = 0; i < 100 && !tcp_; ++i) {
      udp_ = or_throw(net::UdpSocket::bind(net::Address::loopback_v4(0)));
      where_ = or_throw(udp_.local_address());
      Result<net::TcpListener> listener = net::TcpListener::listen(where_);
      if (listener) tcp_ = std::move(*listener);
    }
  }

  [[nodiscard]] const net::Address& where() const { return where_; }
  // In the order in which they came.
  std::vector<DnsQuestion> asked;

  // Until it is cancelled.
  Task<void> run() {
    auto datagram = [this](const net::Datagram& got, net::DatagramSender& sender) -> Task<void> {
      std::string reply = co_await answer(text_of(got.bytes), false);
      if (!reply.empty()) (void)co_await sender.send_to(bytes_of(reply), got.peer);
    };
    auto connection = [this](net::TcpStream peer) -> Task<void> {
      std::array<std::byte, 2> length;
      Result<void> got = co_await net::read_exactly(peer, std::span(length));
      if (!got) co_return;
      std::string message(
          std::to_integer<std::size_t>(length[0]) * 256 + std::to_integer<std::size_t>(length[1]),
          '\0');
      got = co_await net::read_exactly(peer, std::as_writable_bytes(std::span(message)));
      if (!got) co_return;
      std::string reply = co_await answer(message, true);
      std::string framed = number(reply.size()) + reply;
      (void)co_await net::write_all(peer, framed);
    };
    co_await all_of(net::serve_datagrams(udp_, {}, datagram), net::serve(tcp_, {}, connection));
  }

 private:
  static std::string number(std::size_t value) {
    return {static_cast<char>(value >> 8), static_cast<char>(value)};
  }

  Task<std::string> answer(std::string query, bool over_tcp) {
    constexpr std::size_t kHeader = 12;
    DnsQuestion question;
    question.over_tcp = over_tcp;
    std::size_t at = kHeader;
    while (at < query.size() && query[at] != 0) {
      auto length = static_cast<std::size_t>(query[at]);
      if (!question.name.empty()) question.name += '.';
      question.name += query.substr(at + 1, length);
      at += 1 + length;
    }
    if (at + 5 > query.size()) co_return "";
    question.v6 = query[at + 2] == 28;  // AAAA
    std::string asked_for = query.substr(kHeader, at + 5 - kHeader);
    asked.push_back(question);
    DnsAnswer says = behaviour_(question);
    if (says.delay > 0ms) co_await sleep_for(says.delay);
    if (says.silent) co_return "";
    if (!says.instead.empty()) co_return query.substr(0, 2) + says.instead;
    std::vector<net::Address> fitting;
    for (const net::Address& each : says.addresses) {
      if (each.is_v6() == question.v6) fitting.push_back(each);
    }
    std::size_t flags =
        0x8180u | (says.truncated ? 0x0200u : 0u) | static_cast<std::size_t>(says.code);
    std::string reply = query.substr(0, 2) + number(flags) + number(1) + number(fitting.size()) +
                        number(0) + number(0) + asked_for;
    for (const net::Address& each : fitting) {
      reply += number(0xc000 + kHeader);  // the name as above
      reply += number(question.v6 ? 28 : 1) + number(1) + number(0) + number(60);
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(each.native());
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(each.native());
      if (question.v6) {
        reply += number(16) + std::string(reinterpret_cast<const char*>(&v6.sin6_addr), 16);
      } else {
        reply += number(4) + std::string(reinterpret_cast<const char*>(&v4.sin_addr), 4);
      }
    }
    co_return reply;
  }

  Behaviour behaviour_;
  net::UdpSocket udp_;
  net::TcpListener tcp_;
  net::Address where_;
};

}  // namespace weft::test
