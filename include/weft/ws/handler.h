// SPDX-License-Identifier: MIT
#pragma once
// weft::ws::Handler: what answers messages, as http::Handler answers requests.
//
//     class Echo final : public ws::Handler {
//       Task<void> on_message(ws::Connection& connection, ws::Message message) override {
//         Result<void> sent = co_await connection.send(message);
//       }
//     };
//     Echo echo;
//     ws::Endpoint endpoint(echo);
//     routes.get("/echo", endpoint);
//
// One object is there for many connections, on the loop of each. Of one connection, one call runs at a time, and the next
// message is not read before it has ended. What it throws is logged, and closes the connection with 1011.
#include <string_view>

#include "weft/core/task.h"
#include "weft/http/request.h"
#include "weft/ws/connection.h"

namespace weft::inline v0::ws {

class Handler {
 public:
  virtual ~Handler() = default;

  // The connection is open. The request is good until on_close() has ended.
  [[nodiscard]] virtual Task<void> on_open(Connection& connection, const http::Request& request);
  [[nodiscard]] virtual Task<void> on_message(Connection& connection, Message message) = 0;
  // Once for every on_open() that was called, however the connection ended: when it was cancelled too, and then shielded.
  [[nodiscard]] virtual Task<void> on_close(Connection& connection, CloseCode code,
                                            std::string_view reason);
};

}  // namespace weft::inline v0::ws
