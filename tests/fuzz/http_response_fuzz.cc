// SPDX-License-Identifier: MIT
// Fuzzes the parser of responses, as the client uses it: any bytes, in pieces of any size, as an answer to any method.
//
// It looks for what a sanitizer sees, and for this: however the bytes are torn, what is read is the same.
#include <cstdint>

#include "torn_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::http::Method;
  if (size < 2) return 0;
  constexpr Method kAsked[] = {Method::get, Method::head, Method::connect};
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  weft::fuzz::read_both_ways(weft::fuzz::MessageParser::Kind::response, kAsked[data[0] % 3], bytes,
                             1u + data[1]);
  return 0;
}
