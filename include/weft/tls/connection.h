// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::detail::Connection: an Engine on its transport. What a tls::Stream points to.
//
// Threads        the transport's loop.
//
// Invariants (T1 to T6 of docs/design/tls.md, and)
//   C1  while sending_, one task alone writes to the transport, takes off the engine's output, and gives it plaintext.
//       Others may add to the output meanwhile; the sender sends that too.
//   C2  who stops sending while there is output left tells a reader that waits (reader_), which then sends.
//   C3  input lies in lent_ or own_ until the engine has used it up; a reader that waits holds no lent buffer.
//   C4  a writer that the engine can serve only when more has come (is_within_message()) waits for the reader, and is told of all that
//       one does (received_); without a reader it receives itself (receiving_), and a reader that comes meanwhile waits for it.
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/result.h"
#include "weft/core/combinators.h"
#include "weft/core/ok.h"
#include "weft/core/primitives.h"
#include "weft/core/task.h"
#include "weft/io/pooled_bytes.h"
#include "weft/net/stream.h"
#include "weft/sync/parking_lot.h"
#include "weft/time/sleep.h"
#include "weft/time/timeout.h"
#include "weft/tls/engine.h"
#include "weft/tls/stoppable.h"

namespace weft::inline v0::tls {

// How long a failure is held back so that the peer can be told why.
inline constexpr std::chrono::seconds kAlertTimeout{1};

namespace detail {

template <class S>
concept LendsBuffers = requires(S& stream) {
  { stream.read_pooled() } -> Awaitable<Result<PooledBytes>>;
};

// One task at a time.
class Turn {
 public:
  Turn(bool& taken, const char* refusal) : taken_(taken) {
    if (taken) weft::detail::throw_usage_error(refusal);
    taken_ = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { taken_ = false; }

 private:
  bool& taken_;
};

class Flag {
 public:
  explicit Flag(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  ~Flag() { flag_ = false; }

 private:
  bool& flag_;
};

template <net::Stream S>
class Connection {
  static constexpr const char* kSecondReader = "tls::Stream: a second task reads from it";
  static constexpr const char* kSecondWriter = "tls::Stream: a second task writes to it";

 public:
  Connection(S transport, const ClientContext& context, std::string host)
      : transport_(std::move(transport)), engine_(context, std::move(host)) {}
  Connection(S transport, const ServerContext& context)
      : transport_(std::move(transport)), engine_(context) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    WEFT_ASSERT(!reading_ && !writing_,
                "a tls::Stream is destroyed when its operations have ended");
  }

  [[nodiscard]] S& transport() noexcept { return transport_; }
  [[nodiscard]] const S& transport() const noexcept { return transport_; }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }

  Task<Result<void>> handshake() {
    Turn reads(reading_, kSecondReader);
    Turn writes(writing_, kSecondWriter);
    co_await finish_if_cancelled();
    co_return co_await within(engine_.handshake_timeout(), shake_hands());
  }

  Task<Result<std::size_t>> read(std::span<std::byte> buffer) {
    return receive<std::size_t>([this, buffer] { return engine_.read(buffer); });
  }
  // While it waits it holds no buffer.
  Task<Result<PooledBytes>> read_pooled() {
    return receive<PooledBytes>([this] { return read_block(); });
  }

  Task<Result<std::size_t>> write(std::span<const std::byte> bytes) {
    return write_parts(net::Part(bytes), {}, true);
  }
  Task<Result<std::size_t>> write(std::span<const net::Part> parts) {
    return write_parts(net::Part(), parts, false);
  }

  Task<Result<void>> end() {
    Turn turn(writing_, kSecondWriter);
    co_await finish_if_cancelled();
    while (sending_) co_await sent_.park();
    Sending sending(*this);
    while (true) {
      if (std::error_code error = cannot_send()) co_return std::unexpected(error);
      Result<void> ended = engine_.end();
      if (engine_.needs_input()) forget_input();
      if (ended) co_return co_await send();
      if (!engine_.is_within_message()) co_return ended;
      co_await ok(receive_rest(sending));
    }
  }

  Task<Result<void>> flush() {
    Turn turn(writing_, kSecondWriter);
    co_await finish_if_cancelled();
    while (sending_) co_await sent_.park();
    Sending sending(*this);
    co_return co_await send();
  }

  template <class Send>
  void end_now(Send& send) noexcept {
    if (closed_ || sending_ || broken_ || !engine_.is_handshaken()) return;
    try {
      if (!engine_.end()) return;
    } catch (const std::bad_alloc&) {
      return;
    }
    while (engine_.has_output()) {
      std::size_t count = send(engine_.output());
      if (count == 0) return;
      engine_.sent(count);
    }
  }

  [[nodiscard]] TimePoint sent_at() const noexcept { return sent_at_; }

  void close() noexcept {
    closed_ = true;
    transport_.close();
  }

 private:
  // The turn at the transport (C1).
  class Sending {
   public:
    explicit Sending(Connection& connection) noexcept : connection_(connection) { take(); }
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;
    ~Sending() {
      if (taken_) give_back();
    }
    void take() noexcept { connection_.sending_ = taken_ = true; }
    void give_back() noexcept {
      connection_.sending_ = taken_ = false;
      connection_.sent_.unpark_one();
      if (connection_.engine_.has_output() && connection_.reader_) connection_.reader_->stop();
    }

   private:
    Connection& connection_;
    bool taken_ = false;
  };
  // Whoever waits for input looks again when this one has brought some, or does not any more (C4).
  class Telling {
   public:
    explicit Telling(Connection& connection) noexcept : connection_(connection) {}
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;
    ~Telling() { tell(); }
    void tell() noexcept {
      if (connection_.writer_waits_ || connection_.receiving_) connection_.received_.unpark_all();
    }

   private:
    Connection& connection_;
  };

  static std::unexpected<std::error_code> unexpected_close() {
    return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
  }
  [[nodiscard]] std::error_code cannot_send() const noexcept {
    return closed_ ? std::make_error_code(std::errc::bad_file_descriptor) : broken_;
  }
  // Requires: there is output. Whether that is the reader's to send, or to wait for (T4, T6).
  [[nodiscard]] bool must_send() const noexcept {
    return !sending_ || engine_.output_size() > kOutputBytes;
  }

  // `take`: what the engine has for the reader, or nothing if it needs input first.
  template <class T, class Take>
  Task<Result<T>> receive(Take take) {
    Turn turn(reading_, kSecondReader);
    Telling telling(*this);
    co_await finish_if_cancelled();
    while (true) {
      if (closed_) co_return unexpected_close();
      Result<std::optional<T>> got = take();
      if (engine_.needs_input()) forget_input();
      telling.tell();
      if (!got) {
        co_await send_last_words();
        co_return std::unexpected(got.error());
      }
      if (*got) co_return std::move(**got);
      if (receiving_) {
        co_await received_.park();
        continue;
      }
      if (engine_.has_output() && must_send()) {
        co_await ok(receive_and_send());
        continue;
      }
      auto input = co_await stoppable(incoming(), &reader_);
      if (!input) {
        co_await finish_if_cancelled();  // or there is something to send
        continue;
      }
      if (!*input) co_return std::unexpected(input->error());
      feed(std::move(**input));
    }
  }
  Result<std::optional<PooledBytes>> read_block() {
    if (!engine_.may_have_plaintext()) return std::nullopt;
    PooledBytes block = PooledBytes::allocate();
    Result<std::optional<std::size_t>> count = engine_.read(block.room());
    if (!count) return std::unexpected(count.error());
    if (!*count) return std::nullopt;
    block.set_size(**count);
    return block;
  }

  // One of them: a frame holds the list of a single part, and no second frame is needed for that.
  Task<Result<std::size_t>> write_parts(net::Part one, std::span<const net::Part> parts,
                                        bool is_one) {
    if (is_one) parts = std::span<const net::Part>(&one, 1);
    Turn turn(writing_, kSecondWriter);
    co_await finish_if_cancelled();
    while (sending_) co_await sent_.park();
    Sending sending(*this);
    std::size_t taken = 0;
    while (true) {
      if (std::error_code error = cannot_send()) co_return std::unexpected(error);
      if (taken == 0) {
        Result<std::size_t> count = engine_.write(parts);
        if (engine_.needs_input()) forget_input();
        if (!count) co_return std::unexpected(count.error());
        taken = *count;
      }
      if (!engine_.has_output()) {
        if (taken > 0 || !engine_.is_within_message()) co_return taken;
        co_await ok(receive_rest(sending));
        continue;
      }
      auto count = co_await stoppable(transport_.write_some(engine_.output()));
      if (!count) {
        if (taken > 0) co_return taken;  // L5; the rest of its record is sent by the next (C2)
        co_await finish_if_cancelled();
      } else if (std::error_code error = note_sent(*count)) {
        co_return std::unexpected(error);
      }
    }
  }

  // Brings more input, or waits until the reader has (C4); others may send meanwhile. Requires: the engine needs it.
  Task<Result<void>> receive_rest(Sending& sending) {
    if (closed_) co_return unexpected_close();
    sending.give_back();
    if (reading_) {
      Flag waits(writer_waits_);
      co_await received_.park();
    } else {
      Flag receives(receiving_);
      Telling telling(*this);
      auto input = co_await incoming();
      if (!input) co_return std::unexpected(input.error());
      feed(std::move(*input));
    }
    while (sending_) co_await sent_.park();
    sending.take();
    co_return {};
  }

  Task<Result<void>> shake_hands() {
    while (true) {
      if (closed_) co_return unexpected_close();
      Result<bool> done = engine_.handshake();
      if (engine_.needs_input()) forget_input();
      if (!done) {
        co_await send_last_words();
        co_return std::unexpected(done.error());
      }
      // All that a TLS 1.3 server has left to say are tickets: they go with its first answer, and must not wait for a
      // client that does not read yet.
      bool tickets = *done && engine_.is_server() && engine_.version() == Version::tls_1_3;
      if (!tickets) {
        Sending sending(*this);
        co_await ok(send());
        if (closed_) co_return unexpected_close();  // while the last of it was under way
      }
      if (*done) co_return {};
      auto input = co_await incoming();
      if (!input) co_return std::unexpected(input.error());
      feed(std::move(*input));
    }
  }

  // Sends all there is. Requires: the turn.
  Task<Result<void>> send() {
    while (engine_.has_output()) {
      if (std::error_code error = cannot_send()) co_return std::unexpected(error);
      Result<std::size_t> count = co_await transport_.write_some(engine_.output());
      if (std::error_code error = note_sent(count)) co_return std::unexpected(error);
    }
    co_return {};
  }
  std::error_code note_sent(const Result<std::size_t>& count) {
    if (count) {
      engine_.sent(*count);
      sent_at_ = now();
      return {};
    }
    // A record that is cut makes all that could come after it worthless.
    broken_ = count.error();
    engine_.drop_output();
    return broken_;
  }
  // What goes wrong there is the next writer's to hear of.
  Task<void> send_quietly() {
    while (sending_) co_await sent_.park();
    Sending sending(*this);
    Result<void> unheard = co_await send();
    if (!unheard) engine_.drop_output();
  }
  // The alert, if the peer takes it.
  Task<void> send_last_words() {
    if (!engine_.has_output() || sending_) co_return;
    auto unheard = co_await timeout(kAlertTimeout, send_quietly());
    static_cast<void>(unheard);
  }

  Task<Result<void>> receive_and_send() {
    if (engine_.output_size() > kOutputBytes) {
      co_await send_quietly();
      co_return {};
    }
    if (closed_) co_return unexpected_close();  // since receive() looked: this is a task of its own
    auto [input, sent] = co_await any_of(incoming(), send_quietly());
    if (!input) co_return {};
    if (!*input) co_return std::unexpected(input->error());
    feed(std::move(**input));
    co_return {};
  }

  // The next bytes of the transport, as feed() takes them.
  auto incoming() {
    if constexpr (LendsBuffers<S>) {
      return transport_.read_pooled();
    } else {
      if (!own_) own_ = std::make_unique_for_overwrite<std::byte[]>(kRecordBytes);
      return transport_.read_some(std::span(own_.get(), kRecordBytes));
    }
  }
  void feed(PooledBytes bytes) noexcept {
    lent_ = std::move(bytes);
    feed_bytes(lent_);
  }
  void feed(std::size_t count) noexcept { feed_bytes(std::span(own_.get(), count)); }
  void feed_bytes(std::span<const std::byte> bytes) noexcept {
    if (bytes.empty()) {
      engine_.feed_end();
    } else {
      engine_.feed(bytes);
    }
  }
  void forget_input() noexcept { lent_ = PooledBytes(); }

  S transport_;
  Engine engine_;
  PooledBytes lent_;
  std::unique_ptr<std::byte[]> own_;         // where the transport lends none
  std::error_code broken_;                   // what sending has met with
  TimePoint sent_at_{};                      // something, last
  Stop* reader_ = nullptr;                   // a reader that waits for input, and nothing else
  ParkingLot sent_{"tls::Stream, to send"};  // who waits for the turn
  ParkingLot received_{"tls::Stream, the rest of a message"};  // who waits for another's input
  bool reading_ = false;
  bool writing_ = false;
  bool sending_ = false;
  bool receiving_ = false;     // a writer
  bool writer_waits_ = false;  // for the reader
  bool closed_ = false;
};

}  // namespace detail

}  // namespace weft::inline v0::tls
