// SPDX-License-Identifier: MIT
#include "frame_codec.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "weft/base/assert.h"

namespace weft::inline v0::ws::detail {

namespace {

// RFC 6455, 5.2: the shortest form, which wslay insists on.
std::uint64_t head_bytes(std::uint64_t payload, bool is_masked) noexcept {
  std::uint64_t length = payload < 126 ? 0 : payload < 65536 ? 2 : 8;
  return 2 + length + (is_masked ? 4 : 0);
}

}  // namespace

FrameCodec::FrameCodec(bool masks) {
  if (masks) masks_ = std::make_unique<RandomBytes>();
}

wslay_frame_context& FrameCodec::context() {
  if (!context_) {
    const wslay_frame_callbacks callbacks{
        .send_callback = on_send, .recv_callback = on_receive, .genmask_callback = on_mask};
    wslay_frame_context_ptr made = nullptr;
    if (wslay_frame_context_init(&made, &callbacks, this) != 0) throw std::bad_alloc();
    context_.reset(made);
  }
  return *context_;
}

ssize_t FrameCodec::on_receive(std::uint8_t* buffer, std::size_t length, int, void* user) {
  auto& self = *static_cast<FrameCodec*>(user);
  std::size_t count = std::min(length, self.input_.size());
  if (count == 0) return -1;  // "would block"
  std::memcpy(buffer, self.input_.data(), count);
  self.input_ = self.input_.subspan(count);
  self.held_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t FrameCodec::on_send(const std::uint8_t* data, std::size_t length, int, void* user) {
  auto& self = *static_cast<FrameCodec*>(user);
  self.out_->append(reinterpret_cast<const char*>(data), length);
  return static_cast<ssize_t>(length);
}

int FrameCodec::on_mask(std::uint8_t* buffer, std::size_t length, void* user) {
  static_cast<FrameCodec*>(user)->masks_->fill({buffer, length});
  return 0;
}

FrameCodec::Step FrameCodec::read(std::span<const std::byte>& input, FramePiece& piece) {
  if (!context_ && input.empty()) return Step::more;
  wslay_frame_iocb frame{};
  input_ = input;
  ssize_t count = wslay_frame_recv(&context(), &frame);
  input = input_;
  if (count == WSLAY_ERR_WANT_READ) return Step::more;
  if (count < 0) return Step::failed;
  piece.begins = !in_frame_;
  if (piece.begins) told_ = 0;
  told_ += frame.data_length;
  in_frame_ = told_ < frame.payload_length;
  piece.ends = !in_frame_;
  piece.opcode = frame.opcode;
  piece.reserved = frame.rsv;
  piece.is_final = frame.fin != 0;
  piece.is_masked = frame.mask != 0;
  piece.length = frame.payload_length;
  piece.data = std::as_bytes(std::span(frame.data, frame.data_length));
  if (piece.ends) held_ -= head_bytes(piece.length, piece.is_masked) + piece.length;
  return Step::piece;
}

void FrameCodec::write(std::string& out, FrameHead head, std::span<const std::byte> payload) {
  wslay_frame_iocb frame{};
  frame.fin = head.is_final;
  frame.rsv = head.is_compressed ? WSLAY_RSV1_BIT : WSLAY_RSV_NONE;
  frame.opcode = static_cast<std::uint8_t>(head.opcode);
  frame.mask = masks_ != nullptr;
  frame.payload_length = payload.size();
  frame.data = reinterpret_cast<const std::uint8_t*>(payload.data());
  frame.data_length = payload.size();
  out_ = &out;
  ssize_t count = wslay_frame_send(&context(), &frame);
  WEFT_ASSERT(count == static_cast<ssize_t>(payload.size()),
              "wslay writes a frame whole into memory");
}

}  // namespace weft::inline v0::ws::detail
