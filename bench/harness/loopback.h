// SPDX-License-Identifier: MIT
#pragma once
// weft::bench: what every server written in C++ does alike: listen on a free port of the loopback and
// announce it to whoever measures it (harness/server_process.h).

#include <cstddef>
#include <cstdint>

namespace weft::bench {

constexpr std::size_t kReadBufferBytes = 4096;  // the same in every server that has its own

// A listening, non-blocking, close-on-exec socket on 127.0.0.1. Throws: std::system_error.
[[nodiscard]] int listen_on_loopback();

[[nodiscard]] std::uint16_t port_of(int listener);

// `--info` as the last argument: prints what the server is, instead of serving.
// Returns: true if it did.
[[nodiscard]] bool answered_info(int argc, char** argv, const char* info);

// One line on standard output: ServerProcess reads it.
void announce(std::uint16_t port);

// Sets TCP_NODELAY, as tokio's server and Go's do.
void set_no_delay(int socket);

}  // namespace weft::bench
