// SPDX-License-Identifier: MIT
#pragma once
// Http1Connection: HTTP/1.0 and 1.1 on one Transport, from the first byte to the last. docs/design/http.md.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "input.h"
#include "parser.h"
#include "weft/base/intrusive_list.h"
#include "weft/http/server.h"

namespace weft::inline v0::http::detail {

class Http1Connection final : public ServedConnection,
                              private BodySource,
                              private ResponseSink,
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
  [[nodiscard]] After after_wait(Result<PooledBytes> more);
  [[nodiscard]] bool prepare(bool has_body);
  Task<Result<std::size_t>> read_body(std::span<std::byte> buffer) override;
  Task<bool> skip_body();

  // --- Answering ---
  void answer_error(std::exception_ptr error);
  [[nodiscard]] bool answers_at_once() noexcept;
  [[gnu::noinline]] Task<After> finish_answer();
  void refuse(int status, std::string_view why);
  void append_head(std::optional<std::uint64_t> length);
  void append_whole();
  [[nodiscard]] bool has_no_body() const noexcept;
  [[nodiscard]] bool sends_body() const noexcept;
  void begin_stream();
  // Of the body that was promised.
  [[nodiscard]] Result<void> count_body(std::uint64_t bytes);
  Task<Result<void>> write_body(Response& response, std::span<const std::byte> bytes) override;
  Task<Result<void>> write_file(Response& response, Descriptor& file, FileRange range) override;
  Task<Result<void>> copy_file(Descriptor& file, FileRange range);
  Task<Result<void>> flush(Response& response) override;
  // Writes out_, then `tail`.
  [[gnu::noinline]] Task<Result<void>> write_out(std::span<const std::byte> tail = {},
                                                 std::string_view end = {});
  [[gnu::noinline]] Task<void> end(bool lingers);
  Task<void> linger();
  void note_access(std::string_view method, std::string_view target);

  // --- Connection ---
  std::optional<net::Address> peer_address() const override { return transport_.peer_address(); }
  bool is_encrypted() const noexcept override { return transport_.is_encrypted(); }
  Task<Result<Upgraded>> upgrade(Response& response, std::string_view protocol) override;
  void on_stop(std::function<void()> tell) override;

  [[nodiscard]] const Limits& limits() const noexcept { return server_.options().limits; }

  Server& server_;
  Transport& transport_;
  MessageParser parser_;
  Input input_;
  Request request_;
  Body body_;
  Response response_;

  std::string out_;
  std::size_t out_written_ = 0;  // of out_
  std::uint64_t requests_ = 0;
  std::uint64_t body_read_ = 0;
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
};

}  // namespace weft::inline v0::http::detail
