// SPDX-License-Identifier: MIT
#include "weft/http/url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "weft/net/address.h"

namespace weft::inline v0::http {

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_unreserved(char c) noexcept {
  return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}
// RFC 3986, 3.3 and 3.4: pchar, '/' and '?'. '%' is looked at by itself.
bool is_target(char c) noexcept {
  return is_unreserved(c) || std::string_view("!$&'()*+,;=:@/?").find(c) != std::string_view::npos;
}

// RFC 3986, 5.2.4. `path` begins with '/'.
std::string without_dots(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  while (!path.empty()) {
    std::size_t end = std::min(path.find('/', 1), path.size());
    std::string_view part = path.substr(0, end);
    path.remove_prefix(end);
    bool is_last = path.empty();
    if (part == "/..") out.resize(std::min(out.rfind('/'), out.size()));
    if (part != "/." && part != "/..") {
      out += part;
    } else if (is_last) {
      out += '/';
    }
  }
  return out;
}

std::string quoted(std::string_view text, std::size_t at, const char* why) {
  // The text may be somebody else's, and may be long: what is around the place, with nothing in it that a terminal obeys.
  constexpr std::size_t kAround = 20;
  std::size_t from = at > kAround ? at - kAround : 0;
  std::string around(text.substr(std::min(from, text.size()), 2 * kAround));
  for (char& c : around) {
    if (c < 0x20 || c == 0x7f) c = '?';
  }
  return "no URL: " + std::string(why) + ", at byte " + std::to_string(at) + ", in \"" + around +
         "\"";
}

}  // namespace

UrlError::UrlError(std::string_view text, std::size_t at, const char* why)
    : std::invalid_argument(quoted(text, at, why)), at_(at) {}

std::string_view to_string(Scheme scheme) noexcept {
  return scheme == Scheme::http ? "http" : "https";
}

std::string Endpoint::authority() const {
  std::string text = host.find(':') == host.npos ? host : "[" + host + "]";
  if (port != default_port(scheme)) text += ":" + std::to_string(port);
  return text;
}

// Walks over the text once; at_ is where.
class Url::Parser {
 public:
  using Done = Result<void, UrlError>;

  explicit Parser(std::string_view text) noexcept : text_(text) {}

  Done absolute(Url& url) {
    Done done = bound();
    if (done) done = scheme(url);
    if (done) done = authority(url);
    if (done) done = target(url, "");
    return done;
  }

  // `base` is changed into what the reference means.
  Done reference(Url& base) {
    std::size_t end = text_.find_first_of(":/?#");
    if (end != text_.npos && text_[end] == ':') return absolute(base);
    Done done = bound();
    if (!done) return done;
    if (text_.starts_with("//")) {
      done = authority(base);
      return done ? target(base, "") : done;
    }
    std::string path(base.path());
    std::size_t behind = std::min(text_.find('#'), text_.size());
    if (behind == 0) {  // nothing, but a fragment
      return fragment();
    }
    if (text_[0] == '/') return target(base, "");
    if (text_[0] == '?') return target(base, path);
    path.resize(path.rfind('/') + 1);
    return target(base, path);
  }

 private:
  [[nodiscard]] std::unexpected<UrlError> fail(std::size_t at, const char* why) const {
    return std::unexpected(UrlError(text_, at, why));
  }
  Done bound() const {
    if (text_.size() > kBytesMax) return fail(kBytesMax, "it is longer than Url::kBytesMax");
    return {};
  }

  Done scheme(Url& url) {
    std::size_t colon = text_.find(':');
    std::string name(text_.substr(0, std::min<std::size_t>(colon, 6)));
    std::ranges::transform(name, name.begin(), lower);
    if (name == "http") {
      url.origin_.scheme = Scheme::http;
    } else if (name == "https") {
      url.origin_.scheme = Scheme::https;
    } else {
      return fail(0, "its scheme is neither http nor https");
    }
    at_ = name.size() + 1;
    if (colon == text_.npos) return fail(text_.size(), "there is no \"://\" behind the scheme");
    return {};
  }

  Done authority(Url& url) {
    if (text_.substr(at_, 2) != "//") return fail(at_, "there is no \"//\" before the host");
    at_ += 2;
    std::size_t end = std::min(text_.find_first_of("/?#", at_), text_.size());
    if (std::size_t at = text_.substr(0, end).find('@', at_); at != text_.npos) {
      return fail(at, "there is a user before the host; use a header field");
    }
    Done done = at_ < end && text_[at_] == '[' ? literal(url, end) : name(url, end);
    return done ? port(url, end) : done;
  }

  Done literal(Url& url, std::size_t end) {
    std::size_t close = text_.substr(0, end).find(']', at_);
    if (close == text_.npos) return fail(end, "the address has no ']'");
    std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    Result<net::Address> address = net::Address::parse_host(inside, 0);
    // A scope is the sender's own business (RFC 6874 was withdrawn by RFC 9844).
    if (!address || !address->is_v6() || inside.find('%') != inside.npos) {
      return fail(at_ + 1, "there is no IPv6 address in the brackets");
    }
    url.origin_.host = address->host();
    at_ = close + 1;
    return {};
  }

  // Letters, digits, '-', '.', '_' and '~': what else RFC 3986 allows is in no name of a host.
  Done name(Url& url, std::size_t end) {
    std::size_t colon = std::min(text_.substr(0, end).find(':', at_), end);
    if (colon == at_) return fail(at_, "there is no host");
    std::string host(text_.substr(at_, colon - at_));
    for (std::size_t i = 0; i < host.size(); ++i) {
      if (!is_unreserved(host[i])) return fail(at_ + i, "this cannot be in the name of a host");
      host[i] = lower(host[i]);
    }
    // Names that nobody has, and that TLS refuses to look for (RFC 1035, 2.3.4).
    constexpr std::size_t kNameBytesMax = 253;
    bool has_empty_label = host.starts_with('.') || host.contains("..");
    if (has_empty_label) return fail(at_, "a part of the host's name is empty");
    if (host.size() - host.ends_with('.') > kNameBytesMax) {
      return fail(at_, "the name of the host is longer than any");
    }
    url.origin_.host = std::move(host);
    at_ = colon;
    return {};
  }

  Done port(Url& url, std::size_t end) {
    url.origin_.port = default_port(url.origin_.scheme);
    if (at_ == end) return {};
    if (text_[at_] != ':') return fail(at_, "there is no ':' behind the address");
    std::string_view digits = text_.substr(at_ + 1, end - at_ - 1);
    if (digits.empty()) {  // RFC 3986, 3.2.3: as if there were no colon
      at_ = end;
      return {};
    }
    std::uint32_t number = 0;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || stop != digits.data() + digits.size() || number == 0 ||
        number > 65535) {
      return fail(at_ + 1, "the port is no number from 1 to 65535");
    }
    url.origin_.port = static_cast<std::uint16_t>(number);
    at_ = end;
    return {};
  }

  // `before`: what comes in front of the path.
  Done target(Url& url, std::string_view before) {
    std::size_t end = std::min(text_.find('#', at_), text_.size());
    Done done = characters(end);
    if (!done) return done;
    std::string_view given = text_.substr(at_, end - at_);
    std::size_t question = std::min(given.find('?'), given.size());
    std::string path(before);
    path += given.substr(0, question);
    if (path.empty()) path = "/";
    url.target_ = without_dots(path);
    url.target_ += given.substr(question);
    if (url.target_.size() > kBytesMax) return fail(at_, "it is longer than Url::kBytesMax");
    at_ = end;
    return fragment();
  }

  Done fragment() {
    if (at_ < text_.size()) ++at_;
    return characters(text_.size());
  }

  Done characters(std::size_t end) const {
    for (std::size_t i = at_; i < end; ++i) {
      if (text_[i] == '%') {
        if (i + 2 >= end || !is_hex(text_[i + 1]) || !is_hex(text_[i + 2])) {
          return fail(i, "a '%' without two hexadecimal digits behind it");
        }
        i += 2;
      } else if (!is_target(text_[i])) {
        return fail(i, "a character that must be written as a %-escape");
      }
    }
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Result<Url, UrlError> Url::parse(std::string_view text) {
  Url url;
  if (Parser::Done done = Parser(text).absolute(url); !done) return std::unexpected(done.error());
  return url;
}

Result<Url, UrlError> Url::resolve(std::string_view reference) const {
  Url url = *this;
  if (Parser::Done done = Parser(reference).reference(url); !done) {
    return std::unexpected(done.error());
  }
  return url;
}

std::string_view Url::path() const noexcept {
  return std::string_view(target_).substr(0, target_.find('?'));
}

std::string_view Url::query() const noexcept {
  std::size_t question = target_.find('?');
  return question == target_.npos ? std::string_view()
                                  : std::string_view(target_).substr(question + 1);
}

std::string Url::to_string() const {
  return std::string(http::to_string(scheme())) + "://" + authority() + target_;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (is_unreserved(c)) {
      out += c;
    } else {
      out.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return out;
}

}  // namespace weft::inline v0::http
