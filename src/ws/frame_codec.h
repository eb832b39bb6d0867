// SPDX-License-Identifier: MIT
#pragma once
// FrameCodec: the frames of RFC 6455, 5.2, as wslay reads and writes them.
//
// wslay's frame layer, not its event layer: that one answers pings and queues messages by itself, without a bound.
//
// Memory         wslay's context, 4 KiB, while a frame is under way; rest() gives it back.
//
// Invariants
//   F1  held_ bytes were given to wslay, beyond the frames that it has told us whole.
#include <wslay/wslay.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "random.h"

namespace weft::inline v0::ws::detail {

enum class Opcode : std::uint8_t {
  continuation = 0x0,
  text = 0x1,
  binary = 0x2,
  close = 0x8,
  ping = 0x9,
  pong = 0xa,
};
[[nodiscard]] constexpr bool is_control(std::uint8_t opcode) noexcept { return (opcode & 8) != 0; }

// Of a frame, as much as has come.
struct FramePiece {
  std::uint8_t opcode;
  std::uint8_t reserved;  // RSV1 is 4, RSV2 is 2, RSV3 is 1
  bool is_final;
  bool is_masked;
  bool begins, ends;                // whether it is the frame's first piece, and its last
  std::uint64_t length;             // of the frame's payload
  std::span<const std::byte> data;  // unmasked; good until the next call
};

struct FrameHead {
  Opcode opcode;
  bool is_final = true;
  bool is_compressed = false;  // RSV1
};

class FrameCodec {
 public:
  enum class Step : std::uint8_t { piece, more, failed };

  // Whether what it writes is masked: a client's.
  explicit FrameCodec(bool masks);
  FrameCodec(const FrameCodec&) = delete;
  FrameCodec& operator=(const FrameCodec&) = delete;

  // Takes from `input` what it needs. more: all of it. failed: a rule of 5.2 or 5.5 is broken, and nothing may be called any more.
  // Throws std::bad_alloc.
  [[nodiscard]] Step read(std::span<const std::byte>& input, FramePiece& piece);

  // Appends a frame to `out`.
  void write(std::string& out, FrameHead head, std::span<const std::byte> payload);

  // Nothing will come for a while.
  void rest() noexcept {
    if (held_ == 0) context_.reset();
  }

 private:
  struct Free {
    void operator()(wslay_frame_context* context) const noexcept {
      wslay_frame_context_free(context);
    }
  };
  static ssize_t on_send(const std::uint8_t* data, std::size_t length, int flags, void* self);
  static ssize_t on_receive(std::uint8_t* buffer, std::size_t length, int flags, void* self);
  static int on_mask(std::uint8_t* buffer, std::size_t length, void* self);

  wslay_frame_context& context();

  std::unique_ptr<wslay_frame_context, Free> context_;
  std::unique_ptr<RandomBytes> masks_;  // null: what it writes is not masked
  std::span<const std::byte> input_;
  std::string* out_ = nullptr;
  std::uint64_t held_ = 0;
  std::uint64_t told_ = 0;  // of the payload of the frame under way
  bool in_frame_ = false;
};

}  // namespace weft::inline v0::ws::detail
