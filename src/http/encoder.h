// SPDX-License-Identifier: MIT
#pragma once
// Encoder: bytes into one content coding, as they come.
//
// Memory         of gzip 268 KiB; of brotli about 1 MiB at the default level (measured, docs/design/http.md).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "coding.h"
#include "weft/http/compression.h"

namespace weft::inline v0::http::detail {

class Encoder {
 public:
  enum class After : std::uint8_t {
    nothing,  // it keeps what it likes
    flush,    // all that was given can be decoded from what has come out
    end,      // and there will be no more
  };

  virtual ~Encoder() = default;
  // Appends to `out`. Throws std::bad_alloc.
  virtual void encode(std::span<const std::byte> bytes, After after, std::string& out) = 0;
};

// Requires: not identity, and one of known_codings(). Throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<Encoder> make_encoder(Coding coding,
                                                    const CompressionOptions& options);

}  // namespace weft::inline v0::http::detail
