// SPDX-License-Identifier: MIT
// The floor of echo on io_uring: each reply is sent from the buffer that it came in.
#include <cstdio>
#include <exception>
#include <string_view>

#include "harness/uring_floor.h"

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (answered_info(argc, argv,
                    "raw liburing 2.3 loop, multishot, provided buffers; clang " __clang_version__))
    return 0;
  try {
    UringFloor([](std::string_view message) { return message; }).serve_forever();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "uring_echo: %s\n", e.what());
    return 1;
  }
}
