// SPDX-License-Identifier: MIT
#include "extension.h"

#include <algorithm>
#include <string>

#include "handshake.h"
#include "weft/base/assert.h"

namespace weft::inline v0::ws::detail {

namespace {

constexpr std::string_view kField = "sec-websocket-extensions";
constexpr std::string_view kName = "permessage-deflate";
constexpr int kBitsMin = 9;  // zlib's deflate has no window of 8 bits
constexpr int kBitsMax = 15;

// The parameters of one element, as they stand there.
struct Parameters {
  bool server_no_context_takeover = false;
  bool client_no_context_takeover = false;
  std::optional<int> server_max_window_bits;
  std::optional<int> client_max_window_bits;  // 0: named without a value
};

std::string_view trimmed(std::string_view text) noexcept {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// RFC 6455, 9.1: token, or a quoted string that is one when it is unquoted.
bool is_value(std::string_view text) {
  if (!text.starts_with('"')) return is_token(text);
  if (text.size() < 2 || !text.ends_with('"')) return false;
  text = text.substr(1, text.size() - 2);
  std::string unquoted;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && ++i == text.size()) return false;  // it quotes the quote at the end
    unquoted += text[i];
  }
  return is_token(unquoted);
}

// token *( ";" token [ "=" value ] ), space wherever it may be (RFC 2616, 2.1). A comma or a semicolon within quotes would part it,
// and then neither part is good; nor was the whole, as no token has one.
bool is_element(std::string_view text) {
  std::size_t end = text.find(';');
  if (!is_token(trimmed(text.substr(0, end)))) return false;
  while (end != text.npos) {
    text.remove_prefix(end + 1);
    end = text.find(';');
    std::string_view parameter = text.substr(0, end);
    std::size_t equals = parameter.find('=');
    if (!is_token(trimmed(parameter.substr(0, equals)))) return false;
    if (equals != parameter.npos && !is_value(trimmed(parameter.substr(equals + 1)))) return false;
  }
  return true;
}

// "8" to "15", without a leading zero; it may be quoted (RFC 7692, 7.1.2.1).
std::optional<int> bits_of(std::string_view text) noexcept {
  if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) {
    text = text.substr(1, text.size() - 2);
  }
  if (text.size() == 1 && (text[0] == '8' || text[0] == '9')) return text[0] - '0';
  if (text.size() == 2 && text[0] == '1' && text[1] >= '0' && text[1] <= '5') {
    return 10 + text[1] - '0';
  }
  return std::nullopt;
}

bool read_bits(std::optional<int>& bits, std::string_view value) noexcept {
  if (bits) return false;  // twice
  bits = bits_of(value);
  return bits.has_value();
}

bool read_flag(bool& flag, bool has_value) noexcept {
  if (flag || has_value) return false;
  return flag = true;
}

// Returns: nothing if one of them is unknown, there twice, or malformed: 7.1 has that offer declined.
std::optional<Parameters> read_parameters(std::string_view list) {
  Parameters found;
  std::string_view item;
  while (take_item(list, item, ';')) {
    std::size_t equals = item.find('=');
    bool has_value = equals != item.npos;
    std::string_view name = trimmed(item.substr(0, equals));
    std::string_view value = has_value ? trimmed(item.substr(equals + 1)) : std::string_view();
    bool is_good = false;
    if (name == "server_no_context_takeover") {
      is_good = read_flag(found.server_no_context_takeover, has_value);
    } else if (name == "client_no_context_takeover") {
      is_good = read_flag(found.client_no_context_takeover, has_value);
    } else if (name == "server_max_window_bits") {
      is_good = read_bits(found.server_max_window_bits, value);
    } else if (name == "client_max_window_bits" && !has_value) {
      is_good = !found.client_max_window_bits;
      found.client_max_window_bits = 0;
    } else if (name == "client_max_window_bits") {
      is_good = read_bits(found.client_max_window_bits, value);
    }
    if (!is_good) return std::nullopt;
  }
  return found;
}

// Splits "name; parameters".
std::string_view take_name(std::string_view& element) noexcept {
  std::size_t end = element.find(';');
  std::string_view name = element.substr(0, end);
  element.remove_prefix(end == element.npos ? element.size() : end + 1);
  return trimmed(name);
}

std::optional<DeflateTerms> terms_of(const Parameters& offer, const DeflateOptions& options) {
  DeflateTerms terms;
  terms.server_context_takeover =
      options.server_context_takeover && !offer.server_no_context_takeover;
  terms.client_context_takeover =
      options.client_context_takeover && !offer.client_no_context_takeover;
  terms.server_window_bits =
      std::min(options.server_window_bits_max, offer.server_max_window_bits.value_or(kBitsMax));
  if (terms.server_window_bits < kBitsMin) return std::nullopt;
  // 7.1.2.2: who did not name it has not said that it can.
  if (offer.client_max_window_bits) {
    int most = *offer.client_max_window_bits == 0 ? kBitsMax : *offer.client_max_window_bits;
    terms.client_window_bits = std::min(options.client_window_bits_max, most);
  }
  return terms;
}

void append_bits(std::string& text, std::string_view name, int bits) {
  text.append("; ").append(name).append("=").append(std::to_string(bits));
}

// Calls `use(name, parameters)` for each element, until it returns true.
template <class Fn>
void for_each_element(const http::Headers& headers, Fn use) {
  for (const http::Header& field : headers) {
    if (!http::equal_ignoring_case(field.name, kField)) continue;
    std::string_view list = field.value;
    std::string_view element;
    while (take_item(list, element)) {
      std::string_view name = take_name(element);
      if (use(name, element)) return;
    }
  }
}

}  // namespace

void require_valid(const DeflateOptions& options) {
  auto is_window = [](int bits) { return bits >= kBitsMin && bits <= kBitsMax; };
  if (!is_window(options.server_window_bits_max) || !is_window(options.client_window_bits_max)) {
    throw UsageError("DeflateOptions: a window has 9 to 15 bits");
  }
  if (options.level < 1 || options.level > 9 || options.memory_level < 1 ||
      options.memory_level > 9) {
    throw UsageError("DeflateOptions: level and memory_level are between 1 and 9");
  }
}

bool extensions_are_well_formed(const http::Headers& headers) {
  std::size_t elements = 0;
  for (const http::Header& field : headers) {
    if (!http::equal_ignoring_case(field.name, kField)) continue;
    std::string_view list = field.value;
    std::string_view element;
    while (take_item(list, element)) {
      if (!is_element(element)) return false;
      ++elements;
    }
  }
  return elements > 0 || !headers.contains(kField);
}

std::optional<DeflateTerms> take_offer(const http::Headers& headers,
                                       const DeflateOptions& options) {
  std::optional<DeflateTerms> terms;
  for_each_element(headers, [&](std::string_view name, std::string_view parameters) {
    if (name != kName) return false;
    std::optional<Parameters> offer = read_parameters(parameters);
    if (offer) terms = terms_of(*offer, options);
    return terms.has_value();
  });
  return terms;
}

std::string answer_of(const DeflateTerms& terms) {
  std::string text(kName);
  if (!terms.server_context_takeover) text += "; server_no_context_takeover";
  if (!terms.client_context_takeover) text += "; client_no_context_takeover";
  if (terms.server_window_bits < kBitsMax) {
    append_bits(text, "server_max_window_bits", terms.server_window_bits);
  }
  // Less than 15 only if the client has named it (terms_of()).
  if (terms.client_window_bits < kBitsMax) {
    append_bits(text, "client_max_window_bits", terms.client_window_bits);
  }
  return text;
}

std::string offer_of(const DeflateOptions& options) {
  std::string text(kName);
  if (!options.server_context_takeover) text += "; server_no_context_takeover";
  if (!options.client_context_takeover) text += "; client_no_context_takeover";
  if (options.server_window_bits_max < kBitsMax) {
    append_bits(text, "server_max_window_bits", options.server_window_bits_max);
  }
  if (options.client_window_bits_max < kBitsMax) {
    append_bits(text, "client_max_window_bits", options.client_window_bits_max);
  } else {
    text += "; client_max_window_bits";
  }
  return text;
}

bool read_answer(const http::Headers& headers, const std::optional<DeflateOptions>& options,
                 std::optional<DeflateTerms>& terms) {
  bool is_good = true;
  for_each_element(headers, [&](std::string_view name, std::string_view list) {
    // RFC 6455, 4.1: what was not offered, or a second time, fails the connection.
    std::optional<Parameters> answer;
    if (name == kName && options && !terms) answer = read_parameters(list);
    if (!answer || answer->client_max_window_bits == 0) return !(is_good = false);
    terms.emplace();
    terms->server_context_takeover = !answer->server_no_context_takeover;
    terms->client_context_takeover =
        !answer->client_no_context_takeover && options->client_context_takeover;
    terms->server_window_bits = answer->server_max_window_bits.value_or(kBitsMax);
    terms->client_window_bits = std::min(answer->client_max_window_bits.value_or(kBitsMax),
                                         options->client_window_bits_max);
    // 7.1.1.1, 7.1.2.1: what was asked for is granted, or the offer declined.
    is_good = terms->client_window_bits >= kBitsMin &&
              (options->server_context_takeover || answer->server_no_context_takeover) &&
              (options->server_window_bits_max == kBitsMax ||
               (answer->server_max_window_bits &&
                terms->server_window_bits <= options->server_window_bits_max));
    return !is_good;
  });
  return is_good;
}

}  // namespace weft::inline v0::ws::detail
