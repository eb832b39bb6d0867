// SPDX-License-Identifier: MIT
// Fuzzes a server's connection: any bytes as requests, in pieces of any size, over a MemoryStream.
//
// It looks for what a sanitizer sees, for a server that does not end, and for this: however the bytes are torn, the answers
// are the same, and each is a status that the server means.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "require.h"
#include "weft/base/log.h"
#include "weft/http/server.h"
#include "weft/net/memory_stream.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::http;

constexpr std::size_t kHeadBytesMax = 1000;

bool has_chunks(std::string_view bytes) {
  constexpr std::string_view kChunked = "chunked";
  auto found = std::ranges::search(bytes, kChunked, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return !found.empty();
}

// The answers before the one that is 400, which is the last.
std::string_view without_refusal(std::string_view answers) {
  return answers.substr(0, answers.rfind("HTTP/1.1 400 "));
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
  options.limits.head_bytes_max = kHeadBytesMax;
  options.limits.target_bytes_max = 200;
  options.limits.header_fields_max = 10;
  options.limits.body_bytes_max = 1000;
  Server server(mirror, options);
  auto talk = [&]() -> Task<void> {
    net::MemoryStreamOptions wire{.bytes_max = 1 << 20, .read_bytes_max = piece};
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
  // Refusals too: what is answered in one way and refused in the other is what requests are smuggled by.
  if (whole == torn) return 0;
  // But for one bound, which is looked at when bytes have come: that on the sizes and extensions of chunks, against the bytes that they bring.
  fuzz::require(bytes.size() > kHeadBytesMax && has_chunks(bytes));
  std::string_view shorter = without_refusal(torn), longer = whole;
  if (shorter.size() == torn.size()) shorter = without_refusal(whole), longer = torn;
  fuzz::require(shorter.size() < torn.size() || shorter.size() < whole.size());
  fuzz::require(longer.starts_with(shorter));
  return 0;
}
