// SPDX-License-Identifier: MIT
// The floor of echo on epoll.
#include <cstdio>
#include <exception>
#include <string_view>

#include "harness/epoll_floor.h"

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (answered_info(argc, argv, "raw epoll loop, edge-triggered; clang " __clang_version__))
    return 0;
  try {
    EpollFloor([](std::string_view message) { return message; }).serve_forever();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "epoll_echo: %s\n", e.what());
    return 1;
  }
}
