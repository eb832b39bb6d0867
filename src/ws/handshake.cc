// SPDX-License-Identifier: MIT
#include "handshake.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "random.h"
#include "weft/base/assert.h"
#include "weft/base/base64.h"

namespace weft::inline v0::ws::detail {

namespace {

using Digest = std::array<std::uint8_t, 20>;

// SHA-1 (RFC 3174). RFC 6455 has it for a checksum of the handshake; it protects nothing, so no library is asked for it.
class Sha1 {
 public:
  [[nodiscard]] static Digest of(std::string_view text) {
    Sha1 sha;
    std::string padded(text);
    padded += '\x80';
    while (padded.size() % 64 != 56) padded += '\0';
    std::uint64_t bits = text.size() * 8;
    for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift);
    for (std::size_t at = 0; at < padded.size(); at += 64) sha.add(padded.data() + at);
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i) {
      digest[i] = static_cast<std::uint8_t>(sha.h_[i / 4] >> (24 - i % 4 * 8));
    }
    return digest;
  }

 private:
  void add(const char* block) noexcept {
    std::array<std::uint32_t, 80> w;
    for (std::size_t i = 0; i < 16; ++i) {
      w[i] = 0;
      for (std::size_t j = 0; j < 4; ++j) {
        w[i] = w[i] << 8 | static_cast<std::uint8_t>(block[i * 4 + j]);
      }
    }
    for (std::size_t i = 16; i < 80; ++i) {
      w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    auto [a, b, c, d, e] = h_;
    for (std::size_t i = 0; i < 80; ++i) {
      std::uint32_t f, k;
      if (i < 20) {
        f = (b & c) | (~b & d), k = 0x5a827999;
      } else if (i < 40) {
        f = b ^ c ^ d, k = 0x6ed9eba1;
      } else if (i < 60) {
        f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
      } else {
        f = b ^ c ^ d, k = 0xca62c1d6;
      }
      std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    }
    h_[0] += a, h_[1] += b, h_[2] += c, h_[3] += d, h_[4] += e;
  }

  std::array<std::uint32_t, 5> h_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
};

std::string base64(std::span<const std::uint8_t> bytes) {
  return ::weft::detail::base64_encoded(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

}  // namespace

std::string new_key() {
  RandomBytes random;
  std::array<std::uint8_t, 16> bytes;
  random.fill(bytes);
  return base64(bytes);
}

bool is_key(std::string_view key) {
  std::optional<std::string> bytes = ::weft::detail::base64_decoded(key);
  return bytes && bytes->size() == 16;
}

std::string accept_of(std::string_view key) {
  std::string text(key);
  text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  return base64(Sha1::of(text));
}

bool is_token(std::string_view text) noexcept {
  auto may_be_in_it = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, may_be_in_it);
}

std::size_t count_of(const http::Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(headers, [&](const http::Header& field) {
    return http::equal_ignoring_case(field.name, name);
  }));
}

void require_subprotocols(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (!is_token(name)) {
      throw UsageError("subprotocol \"" + name +
                       "\" cannot be offered: a name is one or more letters, digits and "
                       "!#$%&'*+-.^_`|~; several are several elements of the list");
    }
    if (std::ranges::count(names, name) > 1) {
      throw UsageError("subprotocol \"" + name + "\" is there twice: name each once");
    }
  }
}

bool take_item(std::string_view& list, std::string_view& item, char comma) {
  while (true) {
    if (list.empty()) return false;
    std::size_t end = list.find(comma);
    item = list.substr(0, end);
    list.remove_prefix(end == list.npos ? list.size() : end + 1);
    while (!item.empty() && is_space(item.front())) item.remove_prefix(1);
    while (!item.empty() && is_space(item.back())) item.remove_suffix(1);
    if (!item.empty()) return true;
  }
}

}  // namespace weft::inline v0::ws::detail
