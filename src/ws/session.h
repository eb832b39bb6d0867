// SPDX-License-Identifier: MIT
#pragma once
// Session: a Connection on a Transport, from the end of the handshake to the end of the stream. docs/design/ws.md.
//
// Invariants
//   I1  queued_ is the cost of all that is in queue_.
//   I2  in_flight_ is not touched while a write is under way; only write_loop() writes to the transport.
//   I3  end_ and closed_ are set together, once (W4).
//   I4  uses_ tasks are inside of an operation (W6).
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "deflate.h"
#include "extension.h"
#include "frame_codec.h"
#include "message_reader.h"
#include "weft/http/request.h"
#include "weft/http/transport.h"
#include "weft/sync/event.h"
#include "weft/sync/local_mutex.h"
#include "weft/sync/parking_lot.h"
#include "weft/time/sleep.h"
#include "weft/ws/connection.h"
#include "weft/ws/handler.h"
#include "weft/ws/limits.h"

namespace weft::inline v0::ws::detail {

// What a message costs the queue beside its bytes: its node there. Without it a million empty ones would be free.
inline constexpr std::size_t kMessageCost = 64;

enum class Role : std::uint8_t { server, client };

struct SessionSetup {
  Role role = Role::server;
  DeflateOptions deflate{};
  std::optional<DeflateTerms> terms{};  // nothing: no compression
  std::string subprotocol{};
  std::vector<std::byte> read_ahead{};
};

// UsageError: one of them is out of its range.
void require_valid(const Limits& limits);

class Session final : public Connection {
 public:
  // Requires: `transport` and `limits` live as long as this.
  Session(http::Transport& transport, const Limits& limits, SessionSetup setup);

  // Calls `talk`, closes what it has not closed, and waits for the end.
  // Requires: `talk` lives as long as the task.
  using Talk = std::function<Task<void>(Connection&)>;
  [[nodiscard]] Task<void> run(const Talk& talk);
  // A Handler's life, for run().
  [[nodiscard]] Task<void> serve(Handler& handler, const http::Request& request);
  // Sends a Close behind what is queued. Without effect if that was done, or it has ended.
  void begin_close(CloseCode code, std::string_view reason);

  Task<Result<Message>> receive() override;
  bool try_send(const Message& message) override;
  Task<Result<void>> flush() override;
  std::size_t queued_bytes() const noexcept override { return queued_; }
  Task<Result<void>> close(CloseCode code, std::string_view reason) override;
  const std::optional<Close>& closed() const noexcept override { return closed_; }
  std::string_view subprotocol() const noexcept override { return subprotocol_; }
  bool is_compressed() const noexcept override { return coding_ != nullptr; }
  std::optional<net::Address> peer_address() const override { return transport_.peer_address(); }

 private:
  class Use;
  class Turn;
  struct Outgoing {
    Opcode opcode;
    bool is_compressed;
    std::string payload;
    std::size_t written = 0;  // of payload, into frames
  };

  // --- Reading ---
  enum class Next : std::uint8_t { message, end, read };
  // Walks over what is there: to a message, to the end, or until more must be read.
  [[nodiscard]] Next advance();
  // Around a read: how long it may take, and what it brought.
  [[nodiscard]] std::chrono::nanoseconds prepare_read();
  void after_read(Result<PooledBytes> more);
  Task<void> drop_until_end();
  Task<void> linger();

  // --- Writing ---
  Task<Result<void>> send_message(Kind kind, std::span<const std::byte> bytes) override;
  [[nodiscard]] std::size_t cost(std::size_t bytes) const noexcept { return bytes + kMessageCost; }
  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
    return queued_ == 0 || queued_ + cost(bytes) <= limits_.send_queue_bytes_max;
  }
  // Why nothing can be sent any more; no error: it can.
  [[nodiscard]] std::error_code send_error() const noexcept;
  void enqueue(Kind kind, std::span<const std::byte> bytes);
  Task<void> write_loop();
  Task<Result<void>> write_some();
  // Puts into in_flight_ what is worth one write.
  void fill();
  void fill_from_queue();
  void append_close();
  [[nodiscard]] bool has_output() const noexcept;

  // --- The end ---
  Task<void> leave();
  void note_end(std::error_code error, Close how);
  void answer_close(const Close& close);
  void fail(Error error, CloseCode code, std::string_view text);
  void lose(std::error_code error);
  Task<void> wait_for_users();

  http::Transport& transport_;
  const Role role_;
  bool has_pings_ = false;  // the read under way is bounded by them
  const Limits& limits_;
  const std::string subprotocol_;
  FrameCodec codec_;
  // Of permessage-deflate. Null: it was not agreed on, and costs nothing.
  struct Coding {
    explicit Coding(const SessionSetup& setup);
    std::size_t bytes_min;
    Deflater deflater;
    Inflater inflater;
  };
  std::unique_ptr<Coding> coding_;
  MessageReader reader_;

  std::vector<std::byte> read_ahead_;
  PooledBytes lent_;
  std::span<const std::byte> input_;  // in lent_, or in read_ahead_
  bool is_receiving_ = false;
  bool is_dropping_ = false;  // close() receives, and drops it
  bool awaits_pong_ = false;
  TimePoint heard_or_pinged_ = now();

  std::list<Outgoing> queue_;
  std::size_t queued_ = 0;
  std::string in_flight_;
  std::size_t in_flight_written_ = 0;
  std::optional<std::string> pong_;
  bool ping_ = false;
  std::optional<Close> close_;  // to be sent, or sent
  bool close_now_ = false;      // not behind the queue
  bool close_is_written_ = false;

  std::error_code end_;
  std::optional<Close> closed_;
  bool is_broken_ = false;   // the transport is of no more use
  bool has_failed_ = false;  // the peer has broken a rule, and may still be sending

  LocalMutex senders_{"ws::Connection: senders"};
  ParkingLot room_{"ws::Connection: room in the send queue"};
  ParkingLot work_{"ws::Connection: something to write"};
  ParkingLot drained_{"ws::Connection: all is written"};
  Event ended_{"ws::Connection: the end"};
  ParkingLot reader_left_{"ws::Connection: the end, or a turn to read"};
  ParkingLot left_{"ws::Connection: the last user has left"};
  std::size_t uses_ = 0;
};

}  // namespace weft::inline v0::ws::detail
