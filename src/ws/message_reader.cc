// SPDX-License-Identifier: MIT
#include "message_reader.h"

#include <utility>

namespace weft::inline v0::ws::detail {

namespace {

bool is(std::uint8_t opcode, Opcode known) noexcept {
  return opcode == static_cast<std::uint8_t>(known);
}
std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool MessageReader::fail(Error error, CloseCode code, const char* text) noexcept {
  failure_ = Failure{.error = error, .code = code, .text = text};
  return false;
}

Message MessageReader::take_message() noexcept {
  Message message = std::move(message_);
  message_ = Message();
  return message;
}

MessageReader::Step MessageReader::next(std::span<const std::byte>& input) {
  while (true) {
    FramePiece piece;
    FrameCodec::Step step = codec_.read(input, piece);
    if (step == FrameCodec::Step::more) return Step::more;
    if (step == FrameCodec::Step::failed) {
      // 5.2: not the shortest form of the length, or more than 63 bits. 5.5: a control frame is torn, or longer than 125.
      break_rule("the header of a frame is malformed");
      return Step::failed;
    }
    if (piece.begins && !begin_frame(piece)) return Step::failed;
    if (is_control(piece.opcode)) {
      control_.append(text_of(piece.data));
      if (piece.ends) return finish_control(piece.opcode);
    } else {
      if (!add_data(piece.data)) return Step::failed;
      if (piece.ends && piece.is_final) return finish_message() ? Step::message : Step::failed;
    }
  }
}

bool MessageReader::begin_frame(const FramePiece& piece) {
  // 5.1: a client masks, a server does not.
  if (piece.is_masked != peer_masks_) {
    return break_rule(peer_masks_ ? "a frame of a client is not masked"
                                  : "a frame of a server is masked");
  }
  // 5.2: what no extension has given a meaning.
  if ((piece.reserved & ~WSLAY_RSV1_BIT) != 0) return break_rule("a reserved bit is set");
  if (!is_control(piece.opcode)) return begin_data(piece);
  // RFC 7692, 6: the first frame of a message only.
  if (piece.reserved != 0) return break_rule("a control frame has a reserved bit set");
  if (!is(piece.opcode, Opcode::close) && !is(piece.opcode, Opcode::ping) &&
      !is(piece.opcode, Opcode::pong)) {
    return break_rule("the opcode is reserved");
  }
  control_.clear();
  return true;
}

bool MessageReader::begin_data(const FramePiece& piece) {
  bool is_compressed = piece.reserved != 0;
  if (is_compressed && !inflater_) return break_rule("a reserved bit is set");
  if (is(piece.opcode, Opcode::continuation)) {
    if (!in_message_) return break_rule("a continuation of no message");
    if (is_compressed) return break_rule("a continuation has a reserved bit set");
  } else if (is(piece.opcode, Opcode::text) || is(piece.opcode, Opcode::binary)) {
    if (in_message_) return break_rule("a message within another");
    message_.kind = is(piece.opcode, Opcode::text) ? Kind::text : Kind::binary;
    message_.data.clear();
    utf8_.reset();
    in_message_ = true;
    is_compressed_ = is_compressed;
  } else {
    return break_rule("the opcode is reserved");
  }
  if (piece.length > limits_.frame_bytes_max) {
    return fail(Error::message_too_big, close_codes::message_too_big, "the frame is too big");
  }
  if (!is_compressed_ && piece.length > limits_.message_bytes_max - message_.data.size()) {
    return fail(Error::message_too_big, close_codes::message_too_big, "the message is too big");
  }
  return true;
}

bool MessageReader::inflated(Inflater::Step step) noexcept {
  if (step == Inflater::Step::too_big) {
    return fail(Error::message_too_big, close_codes::message_too_big, "the message is too big");
  }
  if (step == Inflater::Step::bad) {
    return fail(Error::bad_data, close_codes::bad_data, "the message does not inflate");
  }
  return true;
}

bool MessageReader::check_text(std::size_t from) {
  if (!message_.is_text() || utf8_.add(message_.bytes().subspan(from))) return true;
  return fail(Error::bad_text, close_codes::bad_data, "the text is not UTF-8");
}

bool MessageReader::add_data(std::span<const std::byte> data) {
  std::size_t size = message_.data.size();
  if (!is_compressed_) {
    message_.data.append(text_of(data));
  } else if (!inflated(inflater_->add(data, message_.data, limits_.message_bytes_max))) {
    return false;
  }
  return check_text(size);
}

bool MessageReader::finish_message() {
  std::size_t size = message_.data.size();
  if (is_compressed_ && !inflated(inflater_->finish(message_.data, limits_.message_bytes_max))) {
    return false;
  }
  if (!check_text(size)) return false;
  if (message_.is_text() && !utf8_.is_whole()) {
    return fail(Error::bad_text, close_codes::bad_data, "the text ends within a character");
  }
  in_message_ = false;
  return true;
}

MessageReader::Step MessageReader::finish_control(std::uint8_t opcode) {
  if (is(opcode, Opcode::ping)) return Step::ping;
  if (is(opcode, Opcode::pong)) return Step::pong;
  return read_close() ? Step::close : Step::failed;
}

// 5.5.1.
bool MessageReader::read_close() {
  if (control_.empty()) {
    close_ = Close(close_codes::no_status, "");
    return true;
  }
  if (control_.size() == 1) return break_rule("a close code has two bytes");
  auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<std::uint8_t>(control_[i]));
  };
  auto code = static_cast<CloseCode>(byte(0) << 8 | byte(1));
  if (!is_sendable(code)) return break_rule("the close code is not one that may be sent");
  std::string reason = control_.substr(2);
  if (!is_utf8(std::as_bytes(std::span(reason)))) {
    return fail(Error::bad_text, close_codes::bad_data, "the close reason is not UTF-8");
  }
  close_ = Close(code, std::move(reason));
  return true;
}

}  // namespace weft::inline v0::ws::detail
