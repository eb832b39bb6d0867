// SPDX-License-Identifier: MIT
// Bytes of a hostile peer, into everything of ws/ that parses: frames, messages, UTF-8, inflate.
//
// The first byte chooses the side, the compression and how the rest is torn. What must hold: the same, however it is torn; no
// message larger than the limit; every text is UTF-8; after the first failure or Close nothing is read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "require.h"
#include "ws/message_reader.h"
#include "ws/utf8.h"

namespace {

using namespace weft::ws;
using weft::fuzz::require;
using weft::ws::detail::FrameCodec;
using weft::ws::detail::Inflater;
using weft::ws::detail::MessageReader;

// All that was read, as text.
std::string read_all(std::span<const std::byte> bytes, bool masks, bool deflates, bool takeover,
                     std::size_t piece) {
  Limits limits;
  limits.message_bytes_max = 2000;
  limits.frame_bytes_max = 1500;
  FrameCodec codec(!masks);
  std::optional<Inflater> inflater;
  if (deflates) inflater.emplace(12, takeover);
  MessageReader reader(codec, limits, masks, deflates ? &*inflater : nullptr);
  std::string log;
  while (true) {
    std::span<const std::byte> next = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(next.size());
    while (true) {
      MessageReader::Step step = reader.next(next);
      if (step == MessageReader::Step::more) break;
      if (step == MessageReader::Step::message) {
        Message message = reader.take_message();
        require(message.data.size() <= limits.message_bytes_max);
        require(!message.is_text() || detail::is_utf8(message.bytes()));
        log += (message.is_text() ? "T" : "B") + message.data + "\n";
      } else if (step == MessageReader::Step::ping) {
        require(reader.ping().size() <= 125);
        log.append("P").append(reader.ping()).append("\n");
      } else if (step == MessageReader::Step::close) {
        require(reader.close().reason.size() <= kCloseReasonBytesMax);
        return log + "C" + std::to_string(reader.close().code) + reader.close().reason;
      } else if (step == MessageReader::Step::failed) {
        require(is_sendable(reader.failure().code));
        return log + "F" + std::to_string(reader.failure().code);
      }
    }
    require(next.empty());
    codec.rest();
    if (bytes.empty()) return log;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  bool masks = (data[0] & 1) != 0;
  bool deflates = (data[0] & 2) != 0;
  bool takeover = (data[0] & 4) != 0;
  std::size_t piece = 1 + (data[0] >> 3);
  std::span<const std::byte> bytes = std::as_bytes(std::span(data + 1, size - 1));
  std::string whole = read_all(bytes, masks, deflates, takeover, size);
  std::string torn = read_all(bytes, masks, deflates, takeover, piece);
  // What is too large and no UTF-8 may be refused for either: that depends on how much was inflated at once.
  for (std::string* log : {&whole, &torn}) {
    if (log->ends_with("F1007") || log->ends_with("F1009"))
      log->replace(log->size() - 4, 4, "100x");
  }
  require(whole == torn);
  return 0;
}
