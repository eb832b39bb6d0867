// SPDX-License-Identifier: MIT
#include "coding.h"

#include <algorithm>
#include <array>
#include <string>

namespace weft::inline v0::http::detail {

namespace {

constexpr int kBest = 1000;

constexpr std::array kCodings = {
#if WEFT_HAS_BROTLI
    Coding::brotli,
#endif
    Coding::gzip,
};

std::string_view trimmed(std::string_view text) noexcept {
  std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes what is before `mark` off the front of `text`, and the mark.
std::string_view take_until(std::string_view& text, char mark) noexcept {
  std::size_t end = text.find(mark);
  std::string_view front = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return trimmed(front);
}

// RFC 9110, 12.4.2: "0", "1", and up to three digits behind a point.
std::optional<int> weight_of(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  if (text.size() > 1 && text[1] != '.') return std::nullopt;
  int weight = (text[0] - '0') * kBest;
  int place = kBest;
  for (char c : text.substr(std::min<std::size_t>(2, text.size()))) {
    if (c < '0' || c > '9') return std::nullopt;
    place /= 10;
    weight += (c - '0') * place;
  }
  if (weight > kBest) return std::nullopt;
  return weight;
}

struct Element {
  std::string_view name;
  int weight = kBest;
};

// "gzip;q=0.5". Nothing: malformed.
std::optional<Element> element_of(std::string_view text) noexcept {
  Element element;
  element.name = take_until(text, ';');
  if (element.name.empty()) return std::nullopt;
  while (!text.empty()) {
    std::string_view parameter = take_until(text, ';');
    std::string_view name = take_until(parameter, '=');
    if (!equal_ignoring_case(name, "q")) return std::nullopt;
    std::optional<int> weight = weight_of(trimmed(parameter));
    if (!weight) return std::nullopt;
    element.weight = *weight;
  }
  return element;
}

}  // namespace

std::string_view to_string(Coding coding) noexcept {
  switch (coding) {
    case Coding::gzip:
      return "gzip";
    case Coding::brotli:
      return "br";
    case Coding::identity:
      break;
  }
  return "";
}

std::optional<Coding> coding_of(std::string_view name) noexcept {
  name = trimmed(name);
  if (name.empty() || equal_ignoring_case(name, "identity")) return Coding::identity;
  // RFC 9110, 8.4.1.3: the old name is the same.
  if (equal_ignoring_case(name, "x-gzip")) return Coding::gzip;
  for (Coding coding : kCodings) {
    if (equal_ignoring_case(name, to_string(coding))) return coding;
  }
  return std::nullopt;
}

std::span<const Coding> known_codings() noexcept { return kCodings; }

int Acceptance::of(Coding coding) const noexcept {
  if (coding == Coding::identity) return identity.value_or(kBest);
  return coding == Coding::gzip ? gzip : brotli;
}

Acceptance acceptance_of(const Headers& headers) noexcept {
  std::optional<int> gzip, brotli, identity, others;
  for (const Header& field : headers) {
    if (!equal_ignoring_case(field.name, "accept-encoding")) continue;
    std::string_view list = field.value;
    while (!list.empty()) {
      std::optional<Element> element = element_of(take_until(list, ','));
      if (!element) continue;
      if (element->name == "*") {
        others = element->weight;
      } else if (equal_ignoring_case(element->name, "gzip") ||
                 equal_ignoring_case(element->name, "x-gzip")) {
        gzip = std::max(gzip.value_or(0), element->weight);
      } else if (equal_ignoring_case(element->name, "br")) {
        brotli = element->weight;
      } else if (equal_ignoring_case(element->name, "identity")) {
        identity = element->weight;
      }
    }
  }
  Acceptance accepts;
  accepts.gzip = gzip.value_or(others.value_or(0));
  accepts.brotli = brotli.value_or(others.value_or(0));
  accepts.identity = identity;
  // The star refuses identity, too, but does not ask for it.
  if (!identity && others == 0) accepts.identity = 0;
  return accepts;
}

Coding choose_coding(const Acceptance& accepts, std::span<const Coding> offered) noexcept {
  Coding best = Coding::identity;
  int best_weight = accepts.identity.value_or(0);
  bool has_coding = false;
  for (Coding coding : offered) {
    int weight = accepts.of(coding);
    // One that is liked as much as identity is taken: that it is smaller is why it was offered.
    bool is_better = has_coding ? weight > best_weight : weight >= best_weight;
    if (weight == 0 || !is_better) continue;
    best = coding;
    best_weight = weight;
    has_coding = true;
  }
  return best;
}

bool is_compressible(std::string_view content_type) noexcept {
  std::string_view type = take_until(content_type, ';');
  static constexpr std::array<std::string_view, 14> kTypes = {
      "application/json",
      "application/javascript",
      "application/ecmascript",
      "application/xml",
      "application/wasm",
      "application/x-ndjson",
      "application/jsonlines",
      "application/x-javascript",
      "application/rtf",
      "application/vnd.ms-fontobject",
      "application/graphql",
      "font/ttf",
      "font/otf",
      "image/bmp",
  };
  std::size_t slash = type.find('/');
  if (slash == type.npos) return false;
  if (equal_ignoring_case(type.substr(0, slash), "text")) return true;
  // RFC 6839: application/ld+json, image/svg+xml.
  std::size_t plus = type.rfind('+');
  if (plus != type.npos && plus > slash) {
    std::string_view suffix = type.substr(plus + 1);
    if (equal_ignoring_case(suffix, "json") || equal_ignoring_case(suffix, "xml")) return true;
  }
  return std::ranges::any_of(
      kTypes, [type](std::string_view known) { return equal_ignoring_case(type, known); });
}

void vary_by_coding(Response& response) {
  std::string list;
  for (const Header& field : response.headers().fields()) {
    if (!equal_ignoring_case(field.name, "vary")) continue;
    if (has_token(field.value, "accept-encoding") || has_token(field.value, "*")) return;
    if (!list.empty()) list += ", ";
    list += field.value;
  }
  if (!list.empty()) list += ", ";
  response.set_header("vary", list + "accept-encoding");
}

}  // namespace weft::inline v0::http::detail
