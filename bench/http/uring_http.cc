// SPDX-License-Identifier: MIT
// The floor of HTTP on io_uring: answers, and parses nothing.
#include <cstdio>
#include <exception>

#include "harness/uring_floor.h"
#include "http/bare_reply.h"

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (answered_info(argc, argv,
                    "raw liburing 2.3 loop that parses nothing; clang " __clang_version__))
    return 0;
  try {
    UringFloor{BareReply()}.serve_forever();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "uring_http: %s\n", e.what());
    return 1;
  }
}
