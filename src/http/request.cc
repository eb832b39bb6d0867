// SPDX-License-Identifier: MIT
#include "weft/http/request.h"

#include <algorithm>

#include "authority.h"
#include "weft/base/assert.h"
#include "weft/core/ok.h"
#include "weft/http/error.h"

namespace weft::inline v0::http {

Task<Result<std::string>> Body::read_all(std::uint64_t bytes_max) {
  constexpr std::size_t kPieceBytes = 4096;
  std::string all;
  while (true) {
    std::size_t size = all.size();
    std::size_t room = length_ ? static_cast<std::size_t>(*length_) - size : kPieceBytes;
    // One byte of room when all is there: the end is to be seen too.
    all.resize(size + std::max<std::size_t>(1, std::min(room, kPieceBytes * 16)));
    std::span<std::byte> buffer = std::as_writable_bytes(std::span(all)).subspan(size);
    std::size_t count = co_await ok(read_some(buffer));
    all.resize(size + count);
    if (count == 0) co_return all;
    if (std::max<std::uint64_t>(all.size(), length_.value_or(0)) > bytes_max) {
      co_return std::unexpected(make_error_code(Error::body_too_large));
    }
  }
}

std::optional<std::string> Request::find_parameter(std::string_view name) const {
  for (const auto& [known, value] : parameters_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::string Request::parameter(std::string_view name) const {
  if (std::optional<std::string> found = find_parameter(name)) return std::move(*found);
  throw UsageError("the path has no parameter {" + std::string(name) +
                   "}: the Router's pattern names those that it has");
}

std::optional<std::string> Request::query_value(std::string_view name) const {
  std::string_view rest = query_;
  while (!rest.empty()) {
    std::size_t end = rest.find('&');
    std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    std::size_t equals = pair.find('=');
    auto decoded = [](std::string_view text) {
      std::string plain(text);
      std::ranges::replace(plain, '+', ' ');  // a form's way to write a space
      return percent_decoded(plain);
    };
    std::optional<std::string> found = decoded(pair.substr(0, equals));
    if (!found || *found != name) continue;
    return decoded(equals == pair.npos ? "" : pair.substr(equals + 1));
  }
  return std::nullopt;
}

RequestBuilder::Target RequestBuilder::build(Request& request, const Parts& parts, Body& body) {
  request.method_ = parts.method;
  request.version_ = parts.version;
  request.method_name_ = parts.method_name;
  request.target_ = parts.target;
  request.authority_ = parts.authority;
  request.headers_ = parts.headers;
  request.body_ = &body;
  request.parameters_.clear();

  // RFC 9112, 3.2: origin-form, absolute-form, authority-form of CONNECT, or "*" of OPTIONS.
  std::string_view target = parts.target;
  if (parts.method == Method::connect) {
    request.authority_ = target;
    request.path_ = request.query_ = {};
    return detail::is_authority(target) ? Target::good : Target::malformed;
  }
  if (target == "*") {
    request.path_ = target;
    request.query_ = {};
    return parts.method == Method::options ? Target::good : Target::malformed;
  }
  Target kind = Target::good;
  if (std::size_t scheme = target.starts_with('/') ? target.npos : target.find("://");
      scheme != target.npos) {
    if (equal_ignoring_case(target.substr(0, scheme), "https")) {
      kind = Target::https;
    } else if (!equal_ignoring_case(target.substr(0, scheme), "http")) {
      return Target::malformed;
    }
    target.remove_prefix(scheme + 3);
    std::size_t path = target.find_first_of("/?");
    request.authority_ = target.substr(0, path);
    target.remove_prefix(path == target.npos ? target.size() : path);
    if (!detail::is_authority(request.authority_)) return Target::malformed;
    if (target.empty()) target = "/";
  }
  std::size_t question = target.find('?');
  request.path_ = target.substr(0, question);
  request.query_ = question == target.npos ? std::string_view() : target.substr(question + 1);
  if (request.path_.empty()) request.path_ = "/";  // http://host?query
  bool is_good = request.path_.starts_with('/') && target.find('#') == target.npos;
  return is_good ? kind : Target::malformed;
}

}  // namespace weft::inline v0::http
