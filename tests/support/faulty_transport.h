// SPDX-License-Identifier: MIT
#pragma once
// A Transport of the etcd store that loses what it is told to lose.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/etcd/etcd_store.h"
#include "durable/etcd/http_transport.h"
#include "weft/weft.h"

namespace weft::test {

enum class Fault {
  none,
  refuse,  // it does not arrive
  lose,    // it is carried out, and the answer is lost
  late,    // it is called lost, and carried out some time later
  slow,    // it is carried out, and the answer takes some time
};

// What happens, and what happened. Outlives the transport.
struct Faults {
  std::function<Fault(const durable::etcd::Question&)> decide;
  int silent_streams = 0;  // so many more streams are opened and say nothing
  bool refuses_streams = false;
  Nursery* nursery = nullptr;
  std::chrono::milliseconds delay{200};
  std::chrono::milliseconds attempt_timeout{2'000}, call_timeout{5'000};  // of the store

  int calls = 0, streams = 0, late_arrivals = 0;
  std::vector<std::size_t> members;  // who was asked
  Event cut{"cut"};                  // ends the streams that are open

  // The first `count` questions to `path` meet `fault`.
  void first(std::string path, Fault fault, int count = 1) {
    decide = [path, fault, left = count](const durable::etcd::Question& question) mutable {
      return question.path == path && left-- > 0 ? fault : Fault::none;
    };
  }
};

class FaultyTransport final : public durable::etcd::Transport {
 public:
  FaultyTransport(const durable::EtcdOptions& options, Faults& faults)
      : inner_(std::make_shared<durable::etcd::HttpTransport>(options)), faults_(faults) {}

  Task<Result<durable::etcd::Answer>> call(std::size_t member,
                                           durable::etcd::Question question) override {
    ++faults_.calls;
    faults_.members.push_back(member);
    const Fault fault = faults_.decide ? faults_.decide(question) : Fault::none;
    const auto lost = std::unexpected(std::make_error_code(std::errc::connection_reset));
    if (fault == Fault::refuse) co_return lost;
    if (fault == Fault::late) {
      faults_.nursery->start(arrive_late(inner_, faults_, member, std::move(question)));
      co_return lost;
    }
    Result<durable::etcd::Answer> answer = co_await inner_->call(member, std::move(question));
    if (fault == Fault::lose) co_return lost;
    if (fault == Fault::slow) co_await sleep_for(faults_.delay);
    co_return answer;
  }

  Task<Result<std::unique_ptr<durable::etcd::AnswerStream>>> stream(
      std::size_t member, durable::etcd::Question question) override {
    ++faults_.streams;
    if (faults_.refuses_streams) {
      co_return std::unexpected(std::make_error_code(std::errc::connection_refused));
    }
    const bool silent = faults_.silent_streams > 0;
    if (silent) --faults_.silent_streams;
    auto opened = co_await inner_->stream(member, std::move(question));
    if (!opened) co_return std::unexpected(opened.error());
    co_return std::make_unique<Stream>(std::move(*opened), faults_, silent);
  }

 private:
  class Stream final : public durable::etcd::AnswerStream {
   public:
    Stream(std::unique_ptr<durable::etcd::AnswerStream> inner, Faults& faults, bool silent)
        : inner_(std::move(inner)), faults_(faults), silent_(silent) {}
    [[nodiscard]] int status() const noexcept override { return inner_->status(); }
    Task<Result<std::optional<std::string>>> next() override {
      if (silent_) co_await faults_.cut.wait();
      auto first = co_await any_of(inner_->next(), faults_.cut.wait());
      auto& [line, cut] = first;
      if (line) co_return std::move(*line);
      co_return std::unexpected(std::make_error_code(std::errc::connection_reset));
    }

   private:
    std::unique_ptr<durable::etcd::AnswerStream> inner_;
    Faults& faults_;
    bool silent_;
  };

  static Task<void> arrive_late(std::shared_ptr<durable::etcd::HttpTransport> inner, Faults& faults,
                                std::size_t member, durable::etcd::Question question) {
    co_await sleep_for(faults.delay);
    Result<durable::etcd::Answer> answer = co_await inner->call(member, std::move(question));
    if (answer && answer->status == 200) ++faults.late_arrivals;
  }

  std::shared_ptr<durable::etcd::HttpTransport> inner_;
  Faults& faults_;
};

inline std::unique_ptr<durable::LockStore> faulty_store(const std::string& url, Faults& faults) {
  durable::EtcdOptions options = or_throw(durable::parse_etcd_url(url));
  options.attempt_timeout = faults.attempt_timeout;
  options.call_timeout = faults.call_timeout;
  auto transport = std::make_unique<FaultyTransport>(options, faults);
  return std::make_unique<durable::EtcdStore>(std::move(options), std::move(transport));
}

}  // namespace weft::test
