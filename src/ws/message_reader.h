// SPDX-License-Identifier: MIT
#pragma once
// MessageReader: messages out of the bytes that a peer sends, and every rule of RFC 6455 that these can break.
//
// It does no I/O: the tests and the fuzzer feed it by hand.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "deflate.h"
#include "frame_codec.h"
#include "utf8.h"
#include "weft/ws/error.h"
#include "weft/ws/limits.h"
#include "weft/ws/message.h"

namespace weft::inline v0::ws::detail {

class MessageReader {
 public:
  enum class Step : std::uint8_t { more, message, ping, pong, close, failed };
  struct Failure {
    Error error;
    CloseCode code;
    const char* text;
  };

  // `peer_masks`: it is a client. `inflater`: null if compression was not agreed on. All live as long as this.
  MessageReader(FrameCodec& codec, const Limits& limits, bool peer_masks,
                Inflater* inflater) noexcept
      : codec_(codec), limits_(limits), peer_masks_(peer_masks), inflater_(inflater) {}

  // Walks on to the next thing that somebody must hear of. more: all of `input` was taken. After close or failed: no more calls.
  [[nodiscard]] Step next(std::span<const std::byte>& input);

  [[nodiscard]] Message take_message() noexcept;
  [[nodiscard]] std::string_view ping() const noexcept { return control_; }
  [[nodiscard]] const Close& close() const noexcept { return close_; }
  [[nodiscard]] const Failure& failure() const noexcept { return *failure_; }

 private:
  // Each returns false if the connection is to fail.
  [[nodiscard]] bool begin_frame(const FramePiece& piece);
  [[nodiscard]] bool begin_data(const FramePiece& piece);
  [[nodiscard]] bool add_data(std::span<const std::byte> data);
  [[nodiscard]] bool check_text(std::size_t from);
  [[nodiscard]] bool finish_message();
  [[nodiscard]] bool read_close();
  [[nodiscard]] bool inflated(Inflater::Step step) noexcept;
  bool fail(Error error, CloseCode code, const char* text) noexcept;
  bool break_rule(const char* text) noexcept {
    return fail(Error::protocol_error, close_codes::protocol_error, text);
  }
  [[nodiscard]] Step finish_control(std::uint8_t opcode);

  FrameCodec& codec_;
  const Limits& limits_;
  const bool peer_masks_;
  Inflater* const inflater_;

  Message message_;
  bool in_message_ = false;
  bool is_compressed_ = false;  // the message under way
  Utf8Checker utf8_;
  std::string control_;  // the payload of a control frame
  Close close_;
  std::optional<Failure> failure_;
};

}  // namespace weft::inline v0::ws::detail
