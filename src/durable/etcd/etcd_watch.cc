// SPDX-License-Identifier: MIT
// EtcdStore::run(): one watch of all queues, and what follows from what it says.
#include <memory>
#include <utility>

#include "durable/etcd/etcd_store.h"
#include "durable/etcd/malformed.h"
#include "weft/base/log.h"
#include "weft/core/combinators.h"
#include "weft/time/timeout.h"

namespace weft::inline v0::durable {

using namespace etcd;

// The watch, opened again and again, always behind the last event that was seen.
class EtcdStore::Watch {
 public:
  explicit Watch(EtcdStore& store) : store_(store) {}

  Task<void> operator()() {
    while (true) {
      // With a guard: a connection can be dead, or a member cut off from the others, without a word.
      co_await any_of(follow(), guard());
      store_.client_.distrust_stream();
      if (++failures_ == kFailuresToLog) {
        log(LogLevel::warning,
            "weft: " + store_.url() + ": no watch, locks are granted at renewals only: " + why_);
      }
      const std::chrono::nanoseconds pause = backoff_.next();
      co_await sleep_for(pause);
    }
  }

 private:
  static constexpr int kFailuresToLog = 10;  // one after the other: some seconds

  // Until the stream ends, for whatever reason.
  Task<void> follow() {
    if (store_.must_list_) {
      LockResult<> listed = co_await store_.list_everything();
      if (!listed) {
        why_ = listed.error().what();
        co_return;
      }
    }
    // From the last event that was seen, once more. A watch that begins at just the revision that etcd has compacted is not refused, and
    // does not tell what was deleted in it.
    std::string json = watch_request(store_.keys_.resources(), store_.watched_);
    Outcome<std::unique_ptr<AnswerStream>> stream =
        co_await store_.client_.stream("/v3/watch", std::move(json));
    if (!stream) {
      why_ = stream.error().message();
      co_return;
    }
    while (true) {
      Result<std::optional<std::string>> line = co_await (*stream)->next();
      if (!line || !*line) {
        why_ = line ? "the stream has ended" : line.error().message();
        co_return;
      }
      const std::expected<Json, JsonError> message = parse_json(**line);
      if (!message || !take((*message)["result"])) co_return;
      store_.tell_gone();
      store_.wake_settling();
    }
  }

  // False: this stream is of no use any more.
  bool take(const Json& result) {
    if (!result.is_object()) {
      why_ = "etcd refuses it";  // {"error": …}
      store_.client_.distrust_token();
      return false;
    }
    const bool is_compacted = result["compact_revision"].integer() != 0;
    if (is_compacted) store_.must_list_ = true;
    if (result["canceled"].is_true()) {
      why_ = result["cancel_reason"].text();
      if (!is_compacted) store_.client_.distrust_token();
      return false;
    }
    const Revision watched = store_.watched_;
    const auto events = result["events"].items();
    for (const Json& event : events) {
      const std::optional<KeyValue> pair = read_key_value(event["kv"]);
      if (!pair) {
        store_.must_list_ = true;
        return false;
      }
      const bool is_delete = event["type"].text() == "DELETE";
      if (is_delete) {
        store_.book_.erase(pair->key, pair->modified);
      } else {
        store_.book_.put(*pair);
      }
      store_.watched_ = std::max(store_.watched_, pair->modified);
    }
    // Neither events nor news of the watch itself: a notice of how far it has come. So a quiet watch is not left behind when
    // the store forgets old revisions.
    const bool is_progress = events.empty() && !result["created"].is_true();
    if (is_progress) store_.watched_ = std::max(store_.watched_, read_revision(result));
    // Not when it was merely opened: a member may take every watch, and drop it.
    if (!events.empty() && store_.watched_ > watched) {
      backoff_.reset();
      failures_ = 0;
      overdue_ = 0;
    }
    return true;
  }

  // Ends when an event is overdue of which we know that it was written.
  Task<void> guard() {
    while (true) {
      const Revision due = store_.expected_;
      if (due <= store_.watched_) {
        co_await store_.doubt_.wait();
        continue;
      }
      co_await sleep_for(store_.options_.attempt_timeout);
      if (due <= store_.watched_) continue;
      why_ = "it does not tell what was written";
      // If no member tells, we are wrong about it: do not go round for ever.
      if (++overdue_ > store_.options_.endpoints.size())
        store_.expected_ = std::exchange(overdue_, 0);
      co_return;
    }
  }

  EtcdStore& store_;
  Backoff backoff_;
  int failures_ = 0;         // since the last event
  std::size_t overdue_ = 0;  // how many of them are the guard's
  std::string why_;
};

Task<void> EtcdStore::run() {
  Watch watch(*this);
  co_await all_of(watch(), settle(), sweep_strays());
}

Task<LockResult<>> EtcdStore::list_everything() {
  std::string json = range_request(keys_.resources());
  Outcome<Reply> reply = co_await client_.call("/v3/kv/range", std::move(json), client_.deadline());
  if (!reply) co_return std::unexpected(reply.error().lock_error());
  const auto pairs = read_key_values(reply->json);
  const Revision revision = read_revision(reply->json);
  if (!pairs || revision == 0) co_return malformed();
  book_.list_all(*pairs, revision);
  watched_ = std::max(watched_, revision);
  must_list_ = false;
  tell_gone();
  wake_settling();
  co_return {};
}

// --- What is told ---------------------------------------------------------------------------------

void EtcdStore::tell_gone() {
  for (const TicketNumber number : book_.take_gone()) listener_->gone(number);
}

Task<void> EtcdStore::settle() {
  Backoff backoff;
  while (true) {
    co_await news_.wait();
    tell_gone();
    while (!book_.fitting().empty()) {
      const bool confirmed = co_await confirm_grants();
      if (confirmed) {
        backoff.reset();
        continue;
      }
      const std::chrono::nanoseconds pause = backoff.next();
      co_await sleep_for(pause);
    }
  }
}

// Reads the tickets that fit once more, from the majority: one whose lease has ended meanwhile is not there.
Task<bool> EtcdStore::confirm_grants() {
  std::vector<TicketNumber> asked;
  Txn txn;
  for (const TicketNumber number : book_.fitting()) {
    if (txn.operations() == Txn::kOperationsMax) break;
    asked.push_back(number);
    txn.then_range(Keyspan::one(book_.find(number)->key), Wanted::keys);
  }
  Outcome<Reply> reply = co_await commit(std::move(txn), client_.deadline());
  if (!reply) co_return false;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto pairs = range_at(reply->json, i);
    if (!pairs) co_return false;
    // It may have been withdrawn, or have gone, while we asked.
    const Ticket* ticket = book_.find(asked[i]);
    if (!ticket || !book_.is_fitting(asked[i])) continue;
    if (pairs->empty() || pairs->front().created != ticket->created) {
      book_.forget(asked[i], read_revision(reply->json));
      listener_->gone(asked[i]);
    } else {
      const TokenBlock tokens = tokens_of(ticket->created);
      book_.grant(asked[i]);
      listener_->granted(asked[i], tokens);
    }
  }
  co_return true;
}

Task<void> EtcdStore::sweep_strays() {
  while (true) {
    co_await strays_.wait();
    co_await sleep_for(kStrayAge);
    const std::map<std::string, Revision> found = book_.take_strays();
    for (const auto& [key, created] : found) {
      Txn txn;
      txn.if_created_at(key, created).then_delete(Keyspan::one(key));
      Outcome<Reply> reply = co_await commit(std::move(txn), client_.deadline());
      if (!reply) book_.add_stray(key, created);  // again, then
    }
    wake_settling();
  }
}

}  // namespace weft::inline v0::durable
