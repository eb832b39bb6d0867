// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::Client: asks the cluster until somebody answers, or time is up.
//
// An attempt that fails (no connection, no answer in EtcdOptions::attempt_timeout, no leader) goes on with the next member,
// after a pause when all have been asked. What such an attempt did is not known: so every question must be one that can be
// asked twice, and Reply::repeated says that it may have been.
//
// Signs in with user and password when there are any, and again when its token is refused: tokens end after minutes.
//
// Threads        one loop.
// Cancellation   a cancelled call may have been carried out or not.
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "durable/etcd/etcd_options.h"
#include "durable/etcd/etcd_transport.h"
#include "durable/etcd/json.h"
#include "weft/durable/lock_error.h"
#include "weft/sync/local_mutex.h"
#include "weft/time/sleep.h"

namespace weft::inline v0::durable::etcd {

// The codes of gRPC that matter here.
enum class Code : int {
  none = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,  // the lease
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,  // "lease already exists", "authentication is not enabled"
  aborted = 10,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};

class Failure {
 public:
  enum Kind {
    unreachable,  // nobody answered in time: the outcome is unknown
    refused,      // etcd said no
  };
  Failure(Kind kind, Code code, std::string message)
      : kind_(kind), code_(code), message_(std::move(message)) {}

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] Code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] LockError lock_error() const;

 private:
  Kind kind_;
  Code code_;
  std::string message_;
};

struct Reply {
  Reply() = default;
  Json json;
  bool repeated = false;  // an earlier attempt may have been carried out
};

template <class T>
using Outcome = std::expected<T, Failure>;

// Waits between attempts: none, then more and more, with some chance in it so that clients do not come in step.
class Backoff {
 public:
  static constexpr std::chrono::milliseconds kFirst{20};
  static constexpr std::chrono::milliseconds kLast{500};
  [[nodiscard]] std::chrono::nanoseconds next();
  void reset() noexcept { pause_ = kFirst; }

 private:
  std::chrono::nanoseconds pause_ = kFirst;
};

class Client {
 public:
  Client(const EtcdOptions& options, std::unique_ptr<Transport> transport);

  // When a call that begins now has to end.
  [[nodiscard]] TimePoint deadline() const;
  [[nodiscard]] Task<Outcome<Reply>> call(std::string path, std::string json, TimePoint deadline);

  // A stream, of one member, in one attempt; after a failure ask again: it will be another one's.
  [[nodiscard]] Task<Outcome<std::unique_ptr<AnswerStream>>> stream(std::string path,
                                                                    std::string json);
  // The stream that is open turned out to be of no use.
  void distrust_stream() noexcept { ++stream_member_; }
  // A stream that was opened said no: etcd looks at a watch's token only then.
  void distrust_token() noexcept { is_signed_in_ = options_.user.empty(); }

 private:
  struct Attempt;
  Task<Attempt> attempt(std::size_t member, std::string path, std::string json,
                        std::chrono::nanoseconds time);
  Task<Attempt> sign_in(std::size_t member, std::string refused, std::chrono::nanoseconds time);
  [[nodiscard]] Failure unreachable(const std::string& why) const;

  const EtcdOptions& options_;
  std::unique_ptr<Transport> transport_;
  std::size_t member_ = 0;  // who answered last; counts on beyond the number of members
  std::size_t stream_member_ = 0;
  LocalMutex signing_in_;
  std::string token_;
  bool is_signed_in_ = false;  // or need not
};

}  // namespace weft::inline v0::durable::etcd
