// SPDX-License-Identifier: MIT
// Fuzzes the parser of responses, as the client uses it: any bytes, in pieces of any size, as an answer to any method.
//
//     clang -w -O1 -g -fsanitize=address,fuzzer-no-link -I/usr/share/include/llhttp -c /usr/share/llhttp/{api,http,llhttp}.c
//     clang++ -std=c++23 -fcoro-aligned-allocation -O1 -g -fsanitize=address,undefined,fuzzer -Iinclude -Isrc
//       -isystem /usr/share/include tests/fuzz/http_response_fuzz.cc src/http/{parser,message}.cc src/base/*.cc api.o http.o llhttp.o
//     ./a.out -max_total_time=60 corpus/
//
// It looks for what a sanitizer sees, and for this: however the bytes are torn, what is read is the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/parser.h"

namespace {

using namespace weft::http;
using Parser = detail::MessageParser;

// Everything that was read of the messages in `bytes`, as text.
std::string read_all(Parser::Kind kind, Method asked, std::string_view bytes, std::size_t piece) {
  Parser parser(kind, {.target_bytes_max = 200, .bytes_max = 1000, .fields_max = 10});
  parser.begin(false);
  parser.expect_answer_to(asked);
  std::string seen;
  std::vector<char> head;  // one that is torn, in one piece (P1)
  std::vector<std::byte> body;
  bool in_head = true;
  while (!bytes.empty()) {
    std::size_t size = std::min(piece, bytes.size());
    std::string_view next = bytes.substr(0, size);
    if (in_head) {
      std::vector<char> grown(head);
      grown.insert(grown.end(), next.begin(), next.end());
      parser.moved(head.data(), grown.data());
      head = std::move(grown);
      next = std::string_view(head.data(), head.size()).substr(head.size() - size);
    }
    body.resize(size);
    Parser::Step step = parser.walk(next, in_head ? std::span<std::byte>() : body);
    if (step.stop == Parser::Stop::failed) return seen + "failed";
    if (step.taken > size) std::abort();
    if (!in_head) seen.append(reinterpret_cast<char*>(body.data()), parser.body_bytes());
    bytes.remove_prefix(step.taken);
    if (in_head) head.resize(head.size() - (size - step.taken));
    if (step.stop == Parser::Stop::more) continue;
    if (in_head) {
      seen += "[" + std::to_string(parser.status());
      for (const Header& field : parser.fields()) {
        seen.append(" ").append(field.name).append("=").append(field.value);
      }
      seen += "]";
      in_head = false;
    }
    if (step.stop == Parser::Stop::message) {
      seen += parser.keeps_alive() ? "." : "!";
      parser.begin(true);
      head.clear();
      in_head = true;
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  constexpr Method kAsked[] = {Method::get, Method::head, Method::connect};
  Method asked = kAsked[data[0] % 3];
  std::size_t piece = 1 + data[1];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::string whole = read_all(Parser::Kind::response, asked, bytes, bytes.size() + 1);
  std::string torn = read_all(Parser::Kind::response, asked, bytes, piece);
  // A failure is seen at once or at its byte, and so is a head that is too large: only what succeeds must agree.
  if (!whole.ends_with("failed") && !torn.ends_with("failed") && whole != torn) std::abort();
  return 0;
}
