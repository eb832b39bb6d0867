// SPDX-License-Identifier: MIT
// Fuzzes EventReader: any bytes as a stream of events, in pieces of any size.
//
// It looks for what a sanitizer sees, and for this: however the bytes are torn, the events are the same, and so are the error, the last id and the
// time to wait; no event is larger than its bound; and nothing has an end of a line in it but data, which has LF.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "require.h"
#include "weft/http/event_reader.h"
#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace weft::http;
using fuzz::require;

constexpr std::size_t kEventBytesMax = 500;

class Pieces final : public http::detail::BodySource {
 public:
  Pieces(std::string_view text, std::size_t size) : text_(text), size_(size) {
    body.reset(*this, std::nullopt, 0);
  }
  Task<Result<std::size_t>> read_body(std::span<std::byte> buffer) override {
    std::size_t count = std::min({size_, buffer.size(), text_.size()});
    if (count > 0) std::memcpy(buffer.data(), text_.data(), count);
    text_.remove_prefix(count);
    co_return count;
  }
  Body body;

 private:
  std::string_view text_;
  std::size_t size_;
};

struct Events {
  std::vector<std::string> all;  // type, data and id of each
  std::string last_id;
  std::error_code error;
  std::optional<std::chrono::milliseconds> retry;
  friend bool operator==(const Events&, const Events&) = default;
};

void examine(const ReceivedEvent& event) {
  require(!event.event.empty() && event.event.find_first_of("\r\n") == std::string::npos);
  require(event.data.find('\r') == std::string::npos);
  require(event.id.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  require(event.id.size() <= EventReader::kIdBytesMax);
  require(event.data.size() <= kEventBytesMax && event.event.size() <= kEventBytesMax);
}

Events read(std::string_view bytes, std::size_t piece) {
  Events events;
  testing::VirtualLoop loop;
  auto talk = [&]() -> Task<void> {
    Pieces pieces(bytes, piece);
    EventReader reader(pieces.body, kEventBytesMax);
    while (true) {
      Result<std::optional<ReceivedEvent>> next = co_await reader.next();
      if (!next) events.error = next.error();
      if (!next || !*next) break;
      examine(**next);
      events.all.push_back((*next)->event + "\r" + (*next)->data + "\r" + (*next)->id);
    }
    events.last_id = reader.last_event_id();
    events.retry = reader.retry();
  };
  run(loop, talk());
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(read(bytes, size) == read(bytes, 1u + data[0] % 64));
  return 0;
}
