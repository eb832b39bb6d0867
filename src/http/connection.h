// SPDX-License-Identifier: MIT
#pragma once
// Http1Connection: HTTP/1.0 and 1.1 on one Transport, from the first byte to the last. docs/design/http.md.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "input.h"
#include "pace.h"
#include "parser.h"
#include "weft/base/intrusive_list.h"
#include "weft/core/started_task.h"
#include "weft/http/server.h"
#include "weft/http/write_and_read.h"
#include "weft/sync/local_mutex.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::http::detail {

class Http1Connection final : public ServedConnection,
                              private BodySource,
                              private ResponseSink,
                              private WriteListener,
                              private Connection {
 public:
  Http1Connection(Server& server, Transport& transport);

  Task<void> run();
  // No more requests: ends at once if it waits for one.
  void stop() noexcept override;

 private:
  enum class After { next, close, linger };
  using Stop = MessageParser::Stop;

  // --- Reading ---
  [[nodiscard]] std::chrono::milliseconds prepare_wait();
  void rest() noexcept;
  void work() noexcept;
  [[nodiscard]] After after_wait(Result<PooledBytes> more);
  [[nodiscard]] bool prepare(bool has_body);
  Task<Result<std::size_t>> read_body(std::span<std::byte> buffer) override;
  [[nodiscard]] std::chrono::nanoseconds body_patience() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds write_patience() const noexcept;
  Task<bool> skip_body();

  // --- Answering ---
  void shed();
  void answer_error(std::exception_ptr error);
  [[nodiscard]] bool answers_at_once() noexcept;
  [[gnu::noinline]] Task<After> finish_answer();
  void refuse(int status, std::string_view why);
  void append_head(std::optional<std::uint64_t> length, std::string_view body = {});
  void append_whole();
  [[nodiscard]] bool has_no_body() const noexcept;
  [[nodiscard]] bool sends_body() const noexcept;
  void begin_stream();
  // Of the body that was promised.
  [[nodiscard]] Result<void> check_body(std::uint64_t bytes);
  [[nodiscard]] Result<void> count_body(std::uint64_t bytes);
  Task<Result<void>> write_body(Response& response, std::span<const std::byte> bytes) override;
  Task<Result<void>> write_file(Response& response, Descriptor& file, FileRange range) override;
  Task<Result<void>> copy_file(Descriptor& file, FileRange range);
  Task<Result<void>> flush(Response& response) override;
  void break_off() noexcept override { is_broken_ = true; }
  // Writes out_, then what is given.
  struct Piece {
    std::string before;
    std::span<const std::byte> bytes;
    std::string_view after;
    Piece() {}
  };
  [[gnu::noinline]] Task<Result<void>> write_out(Piece piece = {});
  [[gnu::noinline]] Task<Result<void>> write_large(std::span<const std::byte> bytes);
  [[nodiscard]] bool write_now();
  // What the next wait reads from and writes to at once; null: it cannot, or there is more to it.
  [[nodiscard]] Descriptor* shared_wait() noexcept;
  [[nodiscard]] std::span<const std::byte> begin_sending() noexcept;
  [[nodiscard]] bool written() noexcept override;
  [[nodiscard]] After after_exchange(WrittenAndRead outcome);
  [[nodiscard]] bool has_output() const noexcept {
    return !out_.empty() || sent_ < sending_.size();
  }
  // Of Limits::output_bytes. What a write that was given up has left counts, too.
  [[nodiscard]] bool has_room() const noexcept {
    return out_.size() + (sending_.size() - sent_) < limits().output_bytes;
  }
  [[nodiscard]] std::error_code write_refusal() const noexcept;
  [[nodiscard]] std::error_code as_write_error(const std::error_code& error) const noexcept;
  [[nodiscard]] bool keeps_its_length(std::uint64_t bytes) const;
  [[gnu::noinline]] Task<void> end(bool lingers);
  Task<void> linger();
  void note_access(std::string_view method, std::string_view target);

  // --- Connection ---
  std::optional<net::Address> peer_address() const override { return transport_.peer_address(); }
  bool is_encrypted() const noexcept override { return transport_.is_encrypted(); }
  std::optional<tls::PeerCertificate> peer_certificate() const override {
    return transport_.peer_certificate();
  }
  Task<Result<Upgraded>> upgrade(Response& response, std::string_view protocol) override;
  void on_stop(std::function<void()> tell) override;
  Task<void> until_peer_leaves() override;

  [[nodiscard]] const Limits& limits() const noexcept { return server_.options().limits; }

  Server& server_;
  Transport& transport_;
  MessageParser parser_;
  Input input_;
  Request request_;
  Body body_;
  Response response_;

  // Answers that are finished wait for the next, because a handler that does not wait is quicker than a system call. One that does
  // must not hold them up. So this is armed before it runs, once for many of them, and fires when the loop has its turn: they leave.
  class Overtaken final : private weft::detail::Waker {
   public:
    explicit Overtaken(Http1Connection& connection) noexcept : connection_(connection) {}
    // Requires: called by run() itself, whose child it will be that writes.
    void arm();
    void disarm() noexcept {
      if (std::exchange(is_armed_, false)) alarm_.disarm();
    }
    // Whether somebody is about to write, and has not begun.
    [[nodiscard]] bool is_starting() const noexcept { return is_starting_; }
    // At the end of run(), however that comes: it must not ring without the scope that it starts its child in.
    class Disarms {
     public:
      explicit Disarms(Overtaken& overtaken) noexcept : overtaken_(overtaken) {}
      Disarms(const Disarms&) = delete;
      Disarms& operator=(const Disarms&) = delete;
      ~Disarms() { overtaken_.disarm(); }

     private:
      Overtaken& overtaken_;
    };

   private:
    void wake() noexcept override;
    bool cancel_with(const CancelReason&) noexcept override { return false; }
    [[nodiscard]] weft::detail::Strand* waiting() const noexcept override { return nullptr; }
    Task<Result<void>> write();

    Http1Connection& connection_;
    Scope* scope_ = nullptr;
    weft::detail::Alarm alarm_;
    StartedTask<Result<void>> writing_;
    bool is_armed_ = false;
    bool is_starting_ = false;
  };

  // Whoever does not get to the end of it has broken the answer.
  class Breaks {
   public:
    explicit Breaks(bool& is_broken) noexcept : is_broken_(&is_broken) {}
    Breaks(const Breaks&) = delete;
    Breaks& operator=(const Breaks&) = delete;
    ~Breaks() {
      if (is_broken_) *is_broken_ = true;
    }
    void dismiss() noexcept { is_broken_ = nullptr; }

   private:
    bool* is_broken_;
  };

  std::string out_;            // to be written
  std::size_t answer_at_ = 0;  // where the current answer begins in it
  std::string sending_;        // the kernel has it in hand
  std::size_t sent_ = 0;       // of sending_
  LocalMutex write_turn_{"http output"};
  Overtaken overtaken_{*this};
  std::error_code write_error_;  // the first: nothing leaves any more
  std::uint64_t requests_ = 0;
  Pace body_pace_;   // of the request's
  Pace write_pace_;  // of what has left since that began
  std::uint64_t body_written_ = 0;
  std::int64_t head_began_ns_ = 0;
  std::error_code body_error_;
  std::function<void()> tell_stop_;
  bool waits_for_request_ = false;
  bool is_stopping_ = false;
  bool message_is_read_ = true;
  bool expects_continue_ = false;
  bool is_chunked_ = false;  // the answer
  bool is_broken_ = false;   // a piece of the answer is missing: H4
  bool is_upgraded_ = false;
  bool peer_goes_on_ = false;  // it would have sent another request
  bool is_watched_ = false;    // until_peer_leaves() reads
};

}  // namespace weft::inline v0::http::detail
