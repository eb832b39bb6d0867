// SPDX-License-Identifier: MIT
#pragma once
// Content codings: which one an answer gets (RFC 9110, 8.4 and 12.5.3). Pure: nothing is compressed here.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "weft/http/message.h"
#include "weft/http/response.h"

namespace weft::inline v0::http::detail {

enum class Coding : std::uint8_t { identity, gzip, brotli };
// As in content-encoding. Of identity: empty.
[[nodiscard]] std::string_view to_string(Coding coding) noexcept;
// Of the value of a content-encoding. Nothing: one that we do not know, or several.
[[nodiscard]] std::optional<Coding> coding_of(std::string_view name) noexcept;

// The ones that were compiled in, the best first.
[[nodiscard]] std::span<const Coding> known_codings() noexcept;

// What a request accepts of each coding, in thousandths; 0: not at all.
struct Acceptance {
  int gzip = 0, brotli = 0;
  // Nothing: it was not named, and is what is taken if there is nothing better.
  std::optional<int> identity;

  [[nodiscard]] int of(Coding coding) const noexcept;
  [[nodiscard]] bool refuses_identity() const noexcept { return identity == 0; }
};
// Of a request without accept-encoding: nothing but identity. An element that is malformed is as if it was not there.
[[nodiscard]] Acceptance acceptance_of(const Headers& headers) noexcept;
// The one that is liked most; among equals the first of `offered`. identity: none of them is accepted, or it is liked more.
[[nodiscard]] Coding choose_coding(const Acceptance& accepts,
                                   std::span<const Coding> offered) noexcept;

// Whether what is of this content type becomes smaller: text, and what is like it.
[[nodiscard]] bool is_compressible(std::string_view content_type) noexcept;

// Puts accept-encoding into the list of `vary`, once. UsageError: the head has been sent.
void vary_by_coding(Response& response);

}  // namespace weft::inline v0::http::detail
