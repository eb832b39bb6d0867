// SPDX-License-Identifier: MIT
#pragma once
// A LockStore between an engine and another store, in a process that ends by SIGKILL when it comes to a named point: before a call, or after it has been
// carried out and before anybody hears of it.
//
//     DyingStore store(or_throw(make_store(url)), {"release", DyingStore::after, 1});
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "support/store_between.h"
#include "weft/durable/lock_store.h"
#include "weft/weft.h"

namespace weft::test {

class DyingStore final : public StoreBetween<DyingStore> {
 public:
  enum Point { before, after };
  struct Death {
    std::string call;  // "renew"; one that is never made: it lives
    Point point = before;
    int time = 1;  // at the first, second …
  };
  using Seen = std::function<void(const std::string& call, Point point)>;

  // seen: of every point that is passed, before it dies there.
  DyingStore(std::unique_ptr<durable::LockStore> inner, Death death, Seen seen)
      : StoreBetween(std::move(inner)), death_(std::move(death)), seen_(std::move(seen)) {}

  // Calls of that name that were answered.
  [[nodiscard]] int answered(const std::string& call) const {
    auto place = answered_.find(call);
    return place == answered_.end() ? 0 : place->second;
  }

 private:
  friend StoreBetween;

  template <class R, class Call>
  Task<durable::LockResult<R>> through(std::string name, Call& call) {
    pass(name, before);
    durable::LockResult<R> answer = co_await call();
    pass(name, after);
    ++answered_[name];
    co_return answer;
  }
  void pass(const std::string& name, Point point) {
    seen_(name, point);
    if (name != death_.call || point != death_.point || --death_.time > 0) return;
    ::kill(::getpid(), SIGKILL);
  }

  Death death_;
  Seen seen_;
  std::map<std::string, int> answered_;
};

}  // namespace weft::test
