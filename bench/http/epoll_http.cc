// SPDX-License-Identifier: MIT
// The floor of HTTP on epoll: answers, and parses nothing.
#include <cstdio>
#include <exception>

#include "harness/epoll_floor.h"
#include "http/bare_reply.h"

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (answered_info(argc, argv, "raw epoll loop that parses nothing; clang " __clang_version__))
    return 0;
  try {
    EpollFloor{BareReply()}.serve_forever();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "epoll_http: %s\n", e.what());
    return 1;
  }
}
