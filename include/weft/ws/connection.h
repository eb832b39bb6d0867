// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::Connection: messages both ways (RFC 6455).
//
//     while (true) {
//       Result<ws::Message> message = co_await socket.receive();
//       if (!message) break;                                      // Error::closed, or what went wrong
//       co_await ok(socket.send(*message));
//     }
//
// One task receives; any number send. Pings are answered, and sent, while somebody receives: a program that does not want to
// hear anything does so too, in a task of its own.
//
// Lifetime       until the coroutine that it was handed to has ended (a Handler: its on_close()). Whoever still waits in it
//                then is let go with Error::closed first. Nothing may be called on it afterwards.
// Threads        its loop.
// Cancellation   a cancel point on every call. A cancelled receive() has lost nothing: the next one goes on. A cancelled send() has
//                sent nothing. A cancelled close() has closed: only the wait for the peer's answer ends.
// Errors         as Result: after the end, always the one that it ended with. A second task that receives: UsageError.
// Allocation     a message; its copy in the queue; frames.
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/net/address.h"
#include "weft/ws/message.h"

namespace weft::inline v0::ws {

class Connection {
 public:
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The next message. Error::closed: the peer has said that there are no more.
  [[nodiscard]] virtual Task<Result<Message>> receive() = 0;

  // Queues a message, behind those that were sent before; waits while there is no room (Limits::send_queue_bytes_max).
  // Requires: the bytes live until then. Error::bad_text: a text is not UTF-8, and nothing was sent.
  [[nodiscard]] Task<Result<void>> send(std::string_view text) {
    return send_message(Kind::text, std::as_bytes(std::span(text)));
  }
  [[nodiscard]] Task<Result<void>> send(std::span<const std::byte> bytes) {
    return send_message(Kind::binary, bytes);
  }
  [[nodiscard]] Task<Result<void>> send(const Message& message) {
    return send_message(message.kind, message.bytes());
  }
  // Queues it if there is room, nobody waits for some, and a text is UTF-8. Returns: whether. For who sends to many, and waits for none.
  [[nodiscard]] virtual bool try_send(const Message& message) = 0;
  // Waits until all that was queued is with the kernel.
  [[nodiscard]] virtual Task<Result<void>> flush() = 0;
  // Of messages that wait to be written, as Limits::send_queue_bytes_max counts them.
  [[nodiscard]] virtual std::size_t queued_bytes() const noexcept = 0;

  // Says that no more will be sent, behind what is queued, and waits for the peer to say the same. What it sends
  // before that is delivered to who receives, or dropped. Without effect if it is closing or closed. Error::close_timeout.
  // UsageError: a code that may not be sent (is_sendable()), a reason that is longer than kCloseReasonBytesMax, or not UTF-8.
  [[nodiscard]] virtual Task<Result<void>> close(CloseCode code = close_codes::normal,
                                                 std::string_view reason = {}) = 0;
  // How it ended; nothing: it has not. See the table in docs/design/ws.md.
  [[nodiscard]] virtual const std::optional<Close>& closed() const noexcept = 0;

  // The one that was agreed on; empty: none.
  [[nodiscard]] virtual std::string_view subprotocol() const noexcept = 0;
  // Whether permessage-deflate was agreed on.
  [[nodiscard]] virtual bool is_compressed() const noexcept = 0;
  [[nodiscard]] virtual std::optional<net::Address> peer_address() const = 0;

 protected:
  Connection() = default;
  ~Connection() = default;

 private:
  virtual Task<Result<void>> send_message(Kind kind, std::span<const std::byte> bytes) = 0;
};

}  // namespace weft::inline v0::ws
