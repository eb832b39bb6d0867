// SPDX-License-Identifier: MIT
// A stream that is closed under those who use it.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <tuple>
#include <utility>

#include "support/tls_engines.h"
#include "weft/net/tcp.h"
#include "weft/tls/stream.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using test::client_context;
using test::server_context;
using Secure = tls::Stream<net::TcpStream>;

// A reader also sends what a cancelled write has left of a record. Whenever the close comes, it ends as a read of a closed stream does.
TEST(TlsClose, EndsAReaderThatHasSomethingToSend) {
  EventLoop loop;
  auto body = [&]() -> Task<void> {
    tls::ServerContext ours = server_context();
    tls::ClientContext theirs = client_context();
    for (int turns = 0; turns < 6; ++turns) {
      net::TcpListener listener = or_throw(net::TcpListener::listen(net::Address::loopback_v4(0)));
      net::Address where = or_throw(listener.local_address());
      auto accept = [&]() -> Task<Result<Secure>> {
        net::TcpStream stream = co_await ok(listener.accept());
        co_return co_await tls::accept(std::move(stream), ours);
      };
      auto connect = [&]() -> Task<Result<Secure>> {
        net::TcpStream stream = co_await ok(net::TcpStream::connect(where));
        co_return co_await tls::connect(std::move(stream), theirs, "127.0.0.1");
      };
      auto ends = or_throw(co_await all_of(accept(), connect()));
      Secure& near = std::get<0>(ends);  // the other one reads nothing
      std::string much(100'000, 'x');
      Result<std::size_t> written;
      while (!near.engine().has_output()) {
        written = co_await within(20ms, near.write_some(std::as_bytes(std::span(much))));
      }
      std::error_code end;
      auto both = [&](Nursery& nursery) -> Task<NurseryEnd> {
        auto read = [&]() -> Task<void> {
          std::array<std::byte, 100> buffer;
          Result<std::size_t> count = co_await near.read_some(buffer);
          end = count ? std::error_code() : count.error();
        };
        nursery.start(read);
        for (int i = 0; i < turns; ++i) co_await yield();
        near.close();
        co_return join;
      };
      co_await with_nursery(both);
      EXPECT_EQ(end, std::errc::bad_file_descriptor) << "closed after " << turns << " turns";
    }
  };
  run(loop, body());
}

}  // namespace
