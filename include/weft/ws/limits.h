// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::Limits, DeflateOptions: every bound of a connection, by name. docs/design/ws.md says what happens at each.
#include <chrono>
#include <cstddef>

namespace weft::inline v0::ws {

struct Limits {
  std::size_t message_bytes_max = 1024 * 1024;     // received, inflated: 1009
  std::size_t frame_bytes_max = 1024 * 1024;       // received: 1009
  std::size_t send_queue_bytes_max = 1024 * 1024;  // then send() waits
  std::size_t fragment_bytes = 64 * 1024;          // of one frame that is sent. Not 0
  std::size_t output_bytes = 64 * 1024;            // of one write. Not 0
  std::size_t informational_max = 16;              // of 1xx before a client's 101: bad_handshake

  std::chrono::milliseconds ping_interval{30'000};      // without a byte from the peer; 0: no pings
  std::chrono::milliseconds pong_timeout{20'000};       // without one after a ping
  std::chrono::milliseconds close_timeout{5'000};       // from our Close to the peer's
  std::chrono::milliseconds write_timeout{30'000};      // without a byte that the peer takes
  std::chrono::milliseconds handshake_timeout{10'000};  // of a client
};

// permessage-deflate (RFC 7692). Memory: per connection and direction, as long as it keeps its context.
struct DeflateOptions {
  bool server_context_takeover = true;  // from one message of the server's to the next
  bool client_context_takeover = true;
  int server_window_bits_max = 12;  // 9 to 15; 2^n bytes
  int client_window_bits_max = 12;
  int level = 6;               // of zlib: 1 is fastest, 9 smallest
  int memory_level = 5;        // of zlib, to compress: 1 to 9
  std::size_t bytes_min = 64;  // a shorter message is sent as it is
};

}  // namespace weft::inline v0::ws
