// SPDX-License-Identifier: MIT
// Fuzzes the content codings of answers: any bytes into a decoder, and through an encoder and back.
//
// It looks for what a sanitizer sees, and for this: however the bytes are torn, what comes out is the same; and what was encoded is decoded
// as it was.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "http/decoder.h"
#include "http/encoder.h"
#include "require.h"

namespace {

using namespace weft::http;
using weft::fuzz::require;
using Bytes = std::span<const std::byte>;

struct Decoded {
  std::string text;
  bool is_bad = false;
  bool is_whole = false;
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

// At most so much: a few bytes may stand for very many.
constexpr std::size_t kTextMax = 200'000;

Decoded decode(detail::Coding coding, Bytes bytes, std::size_t piece, std::size_t room_bytes) {
  auto decoder = detail::make_decoder(coding);
  Decoded result;
  std::array<std::byte, 4096> buffer;
  std::span<std::byte> room = std::span(buffer).first(room_bytes);
  while (!bytes.empty() && result.text.size() < kTextMax) {
    Bytes next = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(next.size());
    while (result.text.size() < kTextMax) {
      detail::Decoder::Step step = decoder->decode(next, room);
      require(step.taken <= next.size() && step.made <= room.size());
      result.text.append(reinterpret_cast<const char*>(room.data()), step.made);
      if (step.is_bad) {
        result.is_bad = true;
        return result;
      }
      next = next.subspan(step.taken);
      if (next.empty() && step.made < room.size()) break;
      require(step.taken > 0 || step.made > 0);  // or it would go on for ever
    }
  }
  result.is_whole = decoder->is_whole();
  if (result.text.size() > kTextMax) result.text.resize(kTextMax);
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::span<const detail::Coding> known = detail::known_codings();
  detail::Coding coding = known[data[0] % known.size()];
  std::size_t piece = 1u + data[1];
  Bytes bytes = std::as_bytes(std::span(data + 2, size - 2));

  Decoded whole = decode(coding, bytes, size, 4096);
  Decoded torn = decode(coding, bytes, piece, 1 + piece % 64);
  if (whole.text.size() < kTextMax && torn.text.size() < kTextMax) {
    // What comes before the error may be handed over with it, or not.
    if (whole.is_bad || torn.is_bad) {
      require(whole.is_bad == torn.is_bad);
    } else {
      require(whole == torn);
    }
  }

  std::string encoded;
  auto encoder = detail::make_encoder(coding, CompressionOptions{});
  for (Bytes rest = bytes; !rest.empty();) {
    Bytes next = rest.first(std::min(piece, rest.size()));
    rest = rest.subspan(next.size());
    using enum detail::Encoder::After;
    encoder->encode(next, data[1] % 2 == 0 ? flush : nothing, encoded);
  }
  encoder->encode({}, detail::Encoder::After::end, encoded);
  Decoded back = decode(coding, std::as_bytes(std::span(encoded)), 1000, 4096);
  require(!back.is_bad && back.is_whole);
  require(std::ranges::equal(std::as_bytes(std::span(back.text)), bytes));
  return 0;
}
