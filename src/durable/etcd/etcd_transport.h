// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::Transport: one question to one member of the cluster, in the JSON of etcd's gateway, and its answer.
//
// It tries once and has no opinion: who to ask, how long, how often and as whom is Client's business. HttpTransport speaks
// to the gateway over HTTP/1.1; one over HTTP/2 needs no more than these two calls.
//
// Threads        one loop.
// Cancellation   a cancelled call gives its connection up: the question may have arrived or not.
// Errors         std::error_code: there was no answer, or not a whole one. The question may have arrived or not.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/core/task.h"

namespace weft::inline v0::durable::etcd {

struct Question {
  Question(std::string where, std::string what) : path(std::move(where)), json(std::move(what)) {}
  std::string path;  // "/v3/kv/txn"
  std::string json;
  std::string token;  // of Client's authentication; empty: none
};

struct Answer {
  Answer() = default;
  int status = 0;  // HTTP's
  std::string json;
};

// An answer that goes on: a line of JSON for each message.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  // HTTP's. If it is not 200, the lines say why.
  [[nodiscard]] virtual int status() const noexcept = 0;
  // Nothing: the end.
  [[nodiscard]] virtual Task<Result<std::optional<std::string>>> next() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // member: counted from 0, in the order of EtcdOptions::endpoints.
  [[nodiscard]] virtual Task<Result<Answer>> call(std::size_t member, Question question) = 0;
  [[nodiscard]] virtual Task<Result<std::unique_ptr<AnswerStream>>> stream(std::size_t member,
                                                                           Question question) = 0;
};

}  // namespace weft::inline v0::durable::etcd
