// SPDX-License-Identifier: MIT
// Fuzzes a server's connection: any bytes as requests, in pieces of any size, over a MemoryStream.
//
// It looks for what a sanitizer sees, for a server that does not end, and for this: however the bytes are torn, the answers
// are the same, and each is a status that the server means; and a head that is read is one by the grammar of RFC 9112, 2 to 5, of which there is a
// second reader below: from the byte behind the last message on, whatever llhttp skips there.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "require.h"
#include "torn_message.h"
#include "weft/base/log.h"
#include "weft/http/server.h"
#include "weft/net/memory_stream.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::http;

// The answers before the last one, if that is a refusal after which the connection ends; nothing if it is not.
std::optional<std::string_view> before_refusal(std::string_view answers) {
  std::size_t at = answers.rfind("HTTP/1.1 ");
  if (at == answers.npos) return std::nullopt;
  std::string_view last = answers.substr(at);
  bool refuses = last.size() > 9 && (last[9] == '4' || last[9] == '5');
  if (!refuses || last.find("\r\nconnection: close\r\n") == last.npos) return std::nullopt;
  return answers.substr(0, at);
}

bool is_token(std::string_view text) {
  constexpr std::string_view kToken =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&'*+-.^_`|~";
  return !text.empty() && text.find_first_not_of(kToken) == text.npos;
}

// 3: method SP target SP version, and nothing else.
bool is_request_line(std::string_view line) {
  std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return false;
  std::string_view target = line.substr(first + 1, last - first - 1),
                   version = line.substr(last + 1);
  auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
  return is_token(line.substr(0, first)) && !target.empty() &&
         std::ranges::all_of(target, is_visible) &&
         (version == "HTTP/1.0" || version == "HTTP/1.1");
}

// 2.1: *CRLF request-line CRLF *( field-line CRLF ) CRLF. No other CR or LF.
bool is_head(std::string_view head) {
  while (head.starts_with("\r\n")) head.remove_prefix(2);
  bool is_first = true;
  while (true) {
    std::size_t end = head.find("\r\n");
    if (end == head.npos) return false;
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != line.npos) return false;
    if (line.empty()) return !is_first && head.empty();
    std::size_t colon = line.find(':');
    if (is_first ? !is_request_line(line) : colon == line.npos || !is_token(line.substr(0, colon)))
      return false;
    is_first = false;
  }
}

// Answers with what it was asked.
class Mirror final : public Handler {
  Task<void> handle_request(const Request& request, Response& response, Connection&) override {
    std::string text(request.method_name());
    text.append(" ").append(request.path()).append(" ?").append(request.query());
    text.append(" @").append(request.authority());
    for (const Header& field : request.headers()) {
      text.append(" ").append(field.name).append("=[").append(field.value).append("]");
    }
    // Not everybody reads what comes along.
    if (request.method() != Method::delete_) {
      Result<std::string> body = co_await request.body().read_all();
      text.append(" ").append(or_throw(std::move(body)));
    }
    response.body("text/plain", text);
  }
};

std::string answers(std::string_view bytes, std::size_t piece) {
  std::string answer;
  testing::VirtualLoop loop;
  Mirror mirror;
  ServerOptions options;
  options.limits.head_bytes_max = 1000;
  options.limits.target_bytes_max = 200;
  options.limits.header_fields_max = 10;
  options.limits.body_bytes_max = 1000;
  Server server(mirror, options);
  auto talk = [&]() -> Task<void> {
    // Room for all questions, and for all answers: those to the shortest are six times as long.
    std::size_t room = 4096 + 16 * bytes.size();
    net::MemoryStreamOptions wire{.bytes_max = room, .read_bytes_max = piece};
    auto [client, served] = net::memory_streams(wire);
    net::MemoryStream mine = std::move(client);
    StreamTransport transport(std::move(served));
    Result<void> sent = co_await net::write_all(mine, bytes);
    if (sent) sent = co_await mine.shutdown_write();
    co_await server.serve_connection(transport);
    std::array<std::byte, 4096> buffer;
    while (true) {
      Result<std::size_t> count = co_await mine.read_some(buffer);
      if (!count || *count == 0) break;
      answer.append(reinterpret_cast<const char*>(buffer.data()), *count);
    }
  };
  run(loop, talk());
  // What is different by its nature: the time, and whether the body had to be waited for.
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at = 0; (at = answer.find("\r\ndate: ", at)) != answer.npos;)
    answer.erase(at, 37);
  for (std::size_t at = 0; (at = answer.find(kContinue, at)) != answer.npos;) {
    answer.erase(at, kContinue.size());
  }
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kBytesMax = 16 * 1024;
  if (size < 1 || size > kBytesMax) return 0;
  set_log_sink([](LogLevel, std::string_view) noexcept {});
  std::size_t piece = 1 + data[0];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string whole = answers(bytes, kBytesMax);
  std::string torn = answers(bytes, piece);
  // The same limits.
  fuzz::ReadMessages read =
      fuzz::read_both_ways(fuzz::MessageParser::Kind::request, Method::get, bytes, piece);
  for (const fuzz::ReadMessage& message : read.messages) fuzz::require(is_head(message.head));
  if (whole.starts_with("HTTP/1.1 200 ")) fuzz::require(!read.messages.empty());
  // What is answered in one way and refused in the other is what requests are smuggled by.
  if (whole == torn) return 0;
  // But of what breaks two rules, either may be named.
  std::optional<std::string_view> before = before_refusal(whole);
  fuzz::require(before && before == before_refusal(torn));
  return 0;
}
