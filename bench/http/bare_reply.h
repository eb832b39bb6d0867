// SPDX-License-Identifier: MIT
#pragma once
// weft::bench::BareReply: the answer of a server that parses nothing: one for each empty line that came.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "http/plaintext.h"

namespace weft::bench {

class BareReply {
 public:
  BareReply() {
    for (std::size_t i = 0; i < kRequestsMax; ++i) replies_ += one();
  }

  // Requires: whole requests, without a body: that is how the load sends them.
  std::string_view operator()(std::string_view requests) const {
    if (!requests.ends_with("\r\n\r\n")) throw std::runtime_error("a request was torn");
    std::size_t count = 0;
    for (std::size_t at = 0; (at = requests.find("\r\n\r\n", at)) != requests.npos; at += 4)
      ++count;
    if (count > kRequestsMax) throw std::runtime_error("so many requests were not expected");
    return std::string_view(replies_).substr(0, count * one().size());
  }

 private:
  static constexpr std::size_t kRequestsMax = 128;  // a read buffer has no room for more

  // As long as the others' answers. The date is that of RFC 9110.
  static const std::string& one() {
    static const std::string text =
        "HTTP/1.1 200 OK\r\n"
        "content-type: text/plain\r\n"
        "server: bare\r\n"
        "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        "content-length: " +
        std::to_string(kPlaintext.size()) + "\r\n\r\n" + std::string(kPlaintext);
    return text;
  }

  std::string replies_;
};

}  // namespace weft::bench
