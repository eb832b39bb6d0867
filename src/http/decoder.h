// SPDX-License-Identifier: MIT
#pragma once
// Decoder: bytes out of one content coding, as they come. The peer wrote them: it may be anything.
//
// Memory         of gzip 40 KiB; of brotli up to 16 MiB, as the peer's window says.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "coding.h"

namespace weft::inline v0::http::detail {

class Decoder {
 public:
  struct Step {
    std::size_t taken = 0, made = 0;
    bool is_bad = false;  // it is not of this coding
  };

  virtual ~Decoder() = default;
  // Until `bytes` are used up or `room` is full. Throws std::bad_alloc.
  [[nodiscard]] virtual Step decode(std::span<const std::byte> bytes,
                                    std::span<std::byte> room) = 0;
  // Whether it may end here.
  [[nodiscard]] virtual bool is_whole() const noexcept = 0;
};

// Requires: not identity, and one of known_codings(). Throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<Decoder> make_decoder(Coding coding);

}  // namespace weft::inline v0::http::detail
