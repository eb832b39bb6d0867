// SPDX-License-Identifier: MIT
#include "weft/ws/error.h"

#include <string>

namespace weft::inline v0::ws {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft.ws"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Error>(code)) {
      case Error::closed:
        return "the connection was closed: Connection::closed() says by which code";
      case Error::protocol_error:
        return "the peer broke a rule of RFC 6455";
      case Error::bad_text:
        return "a text is not UTF-8";
      case Error::bad_data:
        return "a compressed message does not inflate";
      case Error::message_too_big:
        return "a message is larger than Limits::message_bytes_max, or a frame than "
               "Limits::frame_bytes_max";
      case Error::pong_timeout:
        return "the peer did not answer a ping for Limits::pong_timeout";
      case Error::close_timeout:
        return "the peer did not answer our Close for Limits::close_timeout";
      case Error::write_timeout:
        return "the peer took nothing for Limits::write_timeout";
      case Error::internal_error:
        return "the coroutine that the connection was handed to threw";
      case Error::refused:
        return "the server refused to speak WebSocket: ClientOptions::on_refused is told its "
               "answer";
      case Error::bad_handshake:
        return "the server's answer is not one to our handshake";
      case Error::bad_url:
        return "no URL of ws or wss: http::Url::parse() says where, with http for ws";
    }
    return "unknown error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weft::inline v0::ws
