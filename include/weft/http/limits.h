// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Limits: every bound of a server's connection, by name. docs/design/limits.md says what happens at each.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weft::inline v0::http {

struct Limits {
  // These two: of one Server; of all workers together, where serve_on() or listen() starts one on each.
  std::size_t connections_max = 10'000;
  // 503 with retry_after: handlers that run at the same time.
  std::size_t requests_in_progress_max = std::numeric_limits<std::size_t>::max();
  std::chrono::seconds retry_after{1};

  std::size_t target_bytes_max = 8 * 1024;  // 414
  // 431: the request line and all fields. 400: a chunked body's trailers, its chunks' extensions, or their sizes.
  std::size_t head_bytes_max = 16 * 1024;
  std::size_t header_fields_max = 100;         // 431
  std::uint64_t body_bytes_max = 1024 * 1024;  // 413; Body::allow() for one request

  std::chrono::milliseconds idle_timeout{60'000};  // between requests
  std::chrono::milliseconds head_timeout{10'000};  // 408: first byte to the end of the head
  std::chrono::milliseconds body_timeout{30'000};  // 408: without a byte
  // 408: slower than so many bytes a second, over all the time that a handler has waited for its body but the first body_grace. 0: no
  // matter how slow.
  std::uint64_t body_rate_min = 240;
  std::chrono::milliseconds body_grace{30'000};
  std::chrono::milliseconds write_timeout{30'000};  // without a byte that the peer takes
  // The same for answers: slower than so many bytes a second, over all the time that the peer was waited for since the request, but the
  // first write_grace, and the connection ends. 0: no matter how slow.
  std::uint64_t write_rate_min = 240;
  std::chrono::milliseconds write_grace{30'000};
  std::chrono::milliseconds linger_timeout{1'000};  // reading on after the last answer
  std::chrono::milliseconds drain_timeout{10'000};  // from a stop to the cancel

  std::size_t output_bytes = 64 * 1024;       // answers that wait to be written
  std::size_t unread_body_bytes = 64 * 1024;  // read and dropped after a handler
  std::uint64_t requests_max = std::numeric_limits<std::uint64_t>::max();  // on one connection
};

// What each of several workers has of limits that are for all of them: connections_max and requests_in_progress_max are divided
// (net::share_of()), the others are the same. serve_on() and listen() do it by themselves.
[[nodiscard]] Limits share_of(const Limits& all, std::size_t workers) noexcept;

}  // namespace weft::inline v0::http
