// SPDX-License-Identifier: MIT
#include "durable/etcd/etcd_keys.h"

#include <charconv>
#include <limits>
#include <utility>

#include "durable/etcd/json.h"
#include "weft/http/message.h"
#include "weft/http/url.h"

namespace weft::inline v0::durable::etcd {

namespace {

constexpr std::size_t kSessionDigits = 16;

std::string hexadecimal(std::uint64_t value) {
  std::string digits(kSessionDigits, '0');
  for (std::size_t i = kSessionDigits; i-- > 0; value >>= 4)
    digits[i] = "0123456789abcdef"[value & 15];
  return digits;
}

std::optional<std::uint64_t> number(std::string_view digits, int base) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace

std::string Keys::of(std::string_view resource) const {
  return root_ + "r/" + http::percent_encoded(resource) + "/";
}

std::string Keys::ticket(std::string_view resource, std::uint64_t session,
                         TicketNumber number) const {
  return of(resource) + "t/" + hexadecimal(session) + "/" + std::to_string(number);
}

std::optional<std::pair<std::string, std::string_view>> Keys::split(std::string_view key) const {
  if (!key.starts_with(root_)) return std::nullopt;
  key.remove_prefix(root_.size());
  if (!key.starts_with("r/")) return std::nullopt;
  key.remove_prefix(2);
  const std::size_t slash = key.find('/');
  if (slash == key.npos) return std::nullopt;
  std::optional<std::string> resource = http::percent_decoded(key.substr(0, slash));
  if (!resource) return std::nullopt;
  return std::pair(std::move(*resource), key.substr(slash + 1));
}

std::optional<TicketKey> Keys::parse_ticket(std::string_view key) const {
  auto parts = split(key);
  if (!parts || !parts->second.starts_with("t/")) return std::nullopt;
  const std::string_view rest = parts->second.substr(2);
  if (rest.size() < kSessionDigits + 2 || rest[kSessionDigits] != '/') return std::nullopt;
  const std::optional<std::uint64_t> session = number(rest.substr(0, kSessionDigits), 16);
  const std::optional<std::uint64_t> which = number(rest.substr(kSessionDigits + 1), 10);
  if (!session || !which) return std::nullopt;
  TicketKey read;
  read.resource = std::move(parts->first);
  read.session = *session;
  read.number = *which;
  return read;
}

std::optional<std::string> Keys::parse_capacity(std::string_view key) const {
  auto parts = split(key);
  if (!parts || parts->second != "capacity") return std::nullopt;
  return std::move(parts->first);
}

std::string write_ticket(const TicketValue& ticket) {
  const auto since = ticket.enqueued.time_since_epoch();
  JsonWriter json;
  json.begin_object().name("owner").text(ticket.owner);
  json.name("weight").integer(ticket.weight).name("capacity").integer(ticket.capacity);
  json.name("enqueued_ms")
      .integer(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
  return json.end_object().take();
}

TicketValue read_ticket(std::string_view value) {
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
  TicketValue ticket;
  const std::expected<Json, JsonError> json = parse_json(value);
  const auto read = [&](std::string_view name) {
    const std::int64_t read = json ? (*json)[name].integer().value_or(kMax) : kMax;
    return static_cast<std::uint32_t>(read < 1 || read > kMax ? kMax : read);
  };
  ticket.weight = read("weight");
  ticket.capacity = read("capacity");
  if (json) {
    ticket.owner = (*json)["owner"].text();
    constexpr std::int64_t kLastTime = 9'000'000'000'000;  // that fits into nanoseconds
    const std::int64_t since = (*json)["enqueued_ms"].integer().value_or(0);
    const std::chrono::milliseconds time(since < 0 || since > kLastTime ? 0 : since);
    ticket.enqueued = std::chrono::system_clock::time_point(time);
  }
  return ticket;
}

}  // namespace weft::inline v0::durable::etcd
