// SPDX-License-Identifier: MIT
// Echo on weft: `weft_echo --epoll` or `--io_uring`. One worker, one task per connection.
#include <weft/io/descriptor.h>
#include <weft/run/io_context.h>
#include <weft/weft.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include "harness/loopback.h"

namespace weft::bench {
namespace {

// read_pooled() takes 2 % less CPU than read() on io_uring, and as much on epoll; and a connection that
// waits holds no buffer.
Task<void> echo(Descriptor connection) {
  for (;;) {
    const Result<PooledBytes> got = co_await connection.read_pooled();
    if (!got || got->empty()) co_return;
    for (std::span<const std::byte> left(*got); !left.empty();) {
      const Result<std::size_t> sent = co_await connection.write(left);
      if (!sent) co_return;
      left = left.subspan(*sent);
    }
  }
}

Task<void> accept_all(UniqueFd socket) {
  Descriptor listener(std::move(socket));
  auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
    for (;;) {
      Descriptor connection = or_throw(co_await listener.accept());
      set_no_delay(connection.number());
      nursery.start(echo(std::move(connection)));
    }
  };
  co_await with_nursery(body);
}

int serve_forever(Driver driver) {
  IOContext context({.workers = 1, .driver = driver});
  UniqueFd listener(listen_on_loopback());
  announce(port_of(listener.get()));
  context.run(accept_all(std::move(listener)));
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  const bool epoll = argc > 1 && std::strcmp(argv[1], "--epoll") == 0;
  const bool uring = argc > 1 && std::strcmp(argv[1], "--io_uring") == 0;
  if (!epoll && !uring) {
    std::fputs("usage: weft_echo --epoll | --io_uring [--info]\n", stderr);
    return 64;
  }
  const char* info = epoll ? "weft on an IOContext, epoll; clang " __clang_version__
                           : "weft on an IOContext, io_uring; clang " __clang_version__;
  if (answered_info(argc, argv, info)) return 0;
  try {
    return serve_forever(epoll ? weft::Driver::epoll : weft::Driver::io_uring);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weft_echo: %s\n", e.what());
    return 1;
  }
}
