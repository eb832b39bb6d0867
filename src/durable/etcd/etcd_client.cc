// SPDX-License-Identifier: MIT
#include "durable/etcd/etcd_client.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string_view>

#include "weft/time/timeout.h"

namespace weft::inline v0::durable::etcd {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMessageBytesMax = 500;  // of what a server says, in an error

// What another attempt may cure.
bool is_passing(Code code, std::string_view message) {
  switch (code) {
    case Code::cancelled:
    case Code::unknown:
    case Code::deadline_exceeded:
    case Code::aborted:
    case Code::internal:
    case Code::unavailable:
      return true;
    case Code::resource_exhausted:
      return message.contains("too many requests");
    default:
      return false;
  }
}

bool wants_sign_in(Code code, std::string_view message) {
  return code == Code::unauthenticated ||
         (code == Code::invalid_argument && (message.contains("revision of auth store is old") ||
                                             message.contains("user name is empty")));
}

std::mt19937_64& dice() {
  thread_local std::mt19937_64 made{std::random_device{}()};
  return made;
}

}  // namespace

LockError Failure::lock_error() const {
  if (kind_ == unreachable) return LockError(LockError::unreachable, message_);
  std::string text = "etcd says: " + message_;
  if (message_.contains("space exceeded"))
    text += "; compact and defragment it, then disarm its alarm";
  if (message_.contains("user name is empty")) text += "; put user:password@ into the URL";
  return LockError(LockError::storage, text);
}

nanoseconds Backoff::next() {
  const nanoseconds pause = pause_;
  pause_ = std::min<nanoseconds>(pause_ * 2, kLast);
  return pause / 2 + nanoseconds(static_cast<std::int64_t>(
                         dice()() % static_cast<std::uint64_t>(pause.count())));
}

// What came of one attempt.
struct Client::Attempt {
  enum Kind { answered, failed, refused, unauthenticated };
  Attempt(Kind what, Code which, std::string said)
      : kind(what), code(which), message(std::move(said)) {}
  explicit Attempt(Json read) : kind(answered), json(std::move(read)) {}

  // An answer that was received.
  static Attempt from(const Answer& answer) {
    std::expected<Json, JsonError> read = parse_json(answer.json);
    // The gateway's error of a call, and of a stream.
    const Json& error = read ? (*read)["error"] : Json();
    if (answer.status == 200 && read && error.is_null()) return Attempt(std::move(*read));
    std::string said(error.is_object() ? error["message"].text() : error.text());
    std::int64_t number = 0;
    if (read)
      number = (error.is_object() ? error["grpc_code"] : (*read)["code"]).integer().value_or(0);
    const Code code = static_cast<Code>(number);
    if (said.empty()) {
      said = "HTTP " + std::to_string(answer.status);
      said += read ? "" : ", and no JSON: is this etcd's client port?";
      if (answer.status >= 500) return Attempt(failed, Code::unknown, said);
    }
    said.resize(std::min(said.size(), kMessageBytesMax));
    if (wants_sign_in(code, said)) return Attempt(unauthenticated, code, said);
    return Attempt(is_passing(code, said) ? failed : refused, code, said);
  }

  Kind kind;
  Code code = Code::none;
  std::string message;
  Json json;
};

Client::Client(const EtcdOptions& options, std::unique_ptr<Transport> transport)
    : options_(options), transport_(std::move(transport)), is_signed_in_(options.user.empty()) {
  // Clients of one URL spread over its members.
  member_ = dice()() % options_.endpoints.size();
  stream_member_ = member_;
}

TimePoint Client::deadline() const { return now() + options_.call_timeout; }

Failure Client::unreachable(const std::string& why) const {
  return Failure(Failure::unreachable, Code::none,
                 options_.url() + " did not answer" + (why.empty() ? "" : ": " + why));
}

Task<Client::Attempt> Client::attempt(std::size_t member, std::string path, std::string json,
                                      nanoseconds time) {
  Question question(std::move(path), std::move(json));
  question.token = token_;
  Result<Answer> answer = co_await within(time, transport_->call(member, std::move(question)));
  if (!answer) co_return Attempt(Attempt::failed, Code::none, answer.error().message());
  co_return Attempt::from(*answer);
}

// `refused`: the token that was. Somebody else may have got another one meanwhile.
Task<Client::Attempt> Client::sign_in(std::size_t member, std::string refused, nanoseconds time) {
  auto lock = co_await signing_in_.lock();
  if (is_signed_in_ && token_ != refused) co_return Attempt(Json());
  is_signed_in_ = false;
  token_.clear();
  JsonWriter json;
  json.begin_object()
      .name("name")
      .text(options_.user)
      .name("password")
      .text(options_.password)
      .end_object();
  Attempt done = co_await attempt(member, "/v3/auth/authenticate", json.take(), time);
  const bool is_off =
      done.kind == Attempt::refused && done.message.contains("authentication is not enabled");
  if (done.kind == Attempt::answered) token_ = done.json["token"].text();
  if (done.kind == Attempt::answered || is_off) {
    is_signed_in_ = true;
    co_return Attempt(Json());
  }
  if (done.kind == Attempt::unauthenticated) done.kind = Attempt::refused;
  co_return done;
}

Task<Outcome<Reply>> Client::call(std::string path, std::string json, TimePoint deadline) {
  const std::size_t members = options_.endpoints.size();
  constexpr int kSignInsMax = 3;
  int sign_ins = 0;
  std::size_t failures = 0;
  bool repeated = false;
  std::string why;
  Backoff backoff;
  while (true) {
    const nanoseconds left = deadline - now();
    if (left <= left.zero()) co_return std::unexpected(unreachable(why));
    const nanoseconds time = std::min<nanoseconds>(left, options_.attempt_timeout);
    const std::size_t asked = member_;
    const std::string used = token_;
    const bool must_sign_in = !is_signed_in_;
    Attempt done(Attempt::failed, Code::none, "");
    if (must_sign_in) {
      done = co_await sign_in(asked % members, used, time);
      if (done.kind == Attempt::answered) continue;
    } else {
      done = co_await attempt(asked % members, path, json, time);
    }
    if (done.kind == Attempt::answered) {
      Reply reply;
      reply.json = std::move(done.json);
      reply.repeated = repeated;
      co_return reply;
    }
    if (done.kind == Attempt::unauthenticated && !options_.user.empty() &&
        ++sign_ins <= kSignInsMax) {
      if (token_ == used) is_signed_in_ = false;
      continue;
    }
    if (done.kind != Attempt::failed) {
      co_return std::unexpected(Failure(Failure::refused, done.code, std::move(done.message)));
    }
    repeated = repeated || !must_sign_in;
    why = std::move(done.message);
    if (member_ == asked) ++member_;
    if (++failures % members != 0) continue;
    const TimePoint wake = std::min(deadline, now() + backoff.next());
    co_await sleep_until(wake);
  }
}

Task<Outcome<std::unique_ptr<AnswerStream>>> Client::stream(std::string path, std::string json) {
  const std::size_t member = stream_member_ % options_.endpoints.size();
  if (!is_signed_in_) {
    Attempt signed_in = co_await sign_in(member, token_, options_.attempt_timeout);
    if (signed_in.kind != Attempt::answered) {
      ++stream_member_;
      co_return std::unexpected(unreachable(signed_in.message));
    }
  }
  Question question(std::move(path), std::move(json));
  question.token = token_;
  Result<std::unique_ptr<AnswerStream>> opened =
      co_await within(options_.attempt_timeout, transport_->stream(member, std::move(question)));
  if (opened && (*opened)->status() == 200) co_return std::move(*opened);
  ++stream_member_;
  // 401 and 400 are what a token that has ended gets; the next call finds out which it is.
  if (opened && !options_.user.empty()) is_signed_in_ = false;
  co_return std::unexpected(unreachable(opened ? "HTTP " + std::to_string((*opened)->status())
                                               : opened.error().message()));
}

}  // namespace weft::inline v0::durable::etcd
