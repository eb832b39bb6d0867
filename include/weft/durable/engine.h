// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::Engine: where locks between processes are kept, and the tasks that keep them alive.
//
//     auto done = co_await durable::with_engine("sqlite:///var/lib/app/locks.db", [&](durable::Engine& engine) -> Task<void> {
//       durable::MutexOptions options{.resource_id = "orders/42"};
//       auto lock = co_await durable::Mutex::open(engine, options);
//       …
//     });
//
//   sqlite:///path/locks.db               one file, for the processes of one machine. Made if it is not there; its folder is not.
//   etcd://host:port,host:port/prefix     etcd 3.4 or later, for several machines. etcds:// is TLS; user:password@ before the hosts;
//                                         then ?timeout=3s, and with TLS &ca=/path&cert=/path&key=/path (PEM files).
//   memory://name                         the engines of this process that say the same name. For tests.
//
// with_engine() opens the store, runs the body, and then gives back what is left. The engine's tasks, a MutexWorkflow per
// resource in use, are children of with_engine(): they end with it, and an error of theirs is its error.
//
// Whoever uses its locks outside of the body is told of the end: who waits has LockError::withdrawn, who holds is cancelled and
// has LockError::lost, and with_engine() waits until its function has ended, however long that takes. A store that does not
// answer is waited for no longer than kDrainTimeout then: what is left in it ends with its leases.
//
// Threads        with_engine() on any loop: the engine's home. Mutex and Semaphore may be used on any loop; elsewhere each
//                acquisition costs two messages to the home and back.
// Cancellation   reaches the body; what is held is given back.
// Errors         with_engine(): LockError, if the store cannot be opened; what the body throws.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/core/combinators.h"
#include "weft/core/nursery.h"
#include "weft/core/primitives.h"
#include "weft/core/shield.h"
#include "weft/core/task.h"
#include "weft/core/try.h"
#include "weft/durable/lock_error.h"
#include "weft/durable/lock_statistics.h"
#include "weft/durable/lock_store.h"
#include "weft/sync/event.h"

namespace weft::inline v0::durable {

namespace detail {
class EngineState;
}

class Engine {
 public:
  explicit Engine(std::unique_ptr<LockStore> store);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // with_engine() calls these three. open(): its tasks become the nursery's. drain(): no acquisition from then on; waits for who
  // holds, gives back what is left, for as long as kDrainTimeout, and ends the workflows. close(): after the nursery has ended.
  Task<LockResult<>> open(Nursery& nursery);
  Task<void> drain();
  Task<void> close();
  static constexpr std::chrono::seconds kDrainTimeout{5};

  // Who holds and who waits, in every process. Of one resource, or of all.
  Task<LockResult<std::vector<ResourceReport>>> report(std::optional<std::string> resource = {});
  // The seed's "force kill": whoever holds the resource loses it, whoever waits for it gets LockError::revoked, in every
  // process. Tokens go on rising. Returns: how many held it or waited.
  Task<LockResult<std::size_t>> revoke(std::string resource);

  // Of this process, since the engine was made. Home loop.
  [[nodiscard]] LockStatistics statistics() const;
  // Resources for which this process has a workflow now. Home loop.
  [[nodiscard]] std::size_t workflows() const noexcept;
  [[nodiscard]] std::string url() const;

  [[nodiscard]] const std::shared_ptr<detail::EngineState>& state() const noexcept {
    return state_;
  }

 private:
  std::shared_ptr<detail::EngineState> state_;  // with handles, and calls that are under way
};

// A store by its URL. LockError::invalid says what is wrong with it; nothing is opened yet.
[[nodiscard]] LockResult<std::unique_ptr<LockStore>> make_store(std::string_view url);

namespace detail {

template <class T>
struct Slot {
  std::optional<T> value;
  bool is_set = false;
  LockResult<T> take() { return std::move(*value); }
};
template <>
struct Slot<void> {
  bool is_set = false;
  static LockResult<> take() { return {}; }
};

struct SetAtEnd {
  Event& event;
  ~SetAtEnd() { event.set(); }
};

template <class T, class Body>
Task<void> run_body(Engine& engine, Body& body, Slot<T>& slot) {
  if constexpr (std::is_void_v<T>) {
    co_await std::invoke(body, engine);
  } else {
    slot.value.emplace(co_await std::invoke(body, engine));
  }
}

}  // namespace detail

template <class Body>
using EngineBodyResult = typename std::invoke_result_t<Body&, Engine&>::value_type;

// The same over a store of your own.
template <class Body>
Task<LockResult<EngineBodyResult<Body>>> with_engine(std::unique_ptr<LockStore> store, Body body) {
  using T = EngineBodyResult<Body>;
  Engine engine(std::move(store));
  detail::Slot<T> slot;
  LockResult<> opened;
  Event ready{"a lock engine"}, left{"the end of an engine's body"};
  // Beside the body, not around it, and shielded: when the body is cancelled, the engine's tasks give back what it held.
  auto serve = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto [answer, gone] = co_await any_of(engine.open(nursery), left.wait());
    if (answer) opened = std::move(*answer);
    ready.set();
    co_await left.wait();
    co_await engine.drain();
    co_return cancel;
  };
  auto service = [&]() -> Task<void> { co_await noncancellable(with_nursery(serve)); };
  auto use = [&]() -> Task<void> {
    detail::SetAtEnd leaving{left};
    co_await ready.wait();
    if (opened) co_await detail::run_body<T>(engine, body, slot);
  };
  auto all = [&]() -> Task<void> { co_await all_of(service(), use()); };
  auto close = [&]() -> Task<void> { co_await engine.close(); };
  co_await try_(all).finally(close);
  if (!opened) co_return std::unexpected(opened.error());
  co_return slot.take();
}
template <class Body>
Task<LockResult<EngineBodyResult<Body>>> with_engine(std::string url, Body body) {
  LockResult<std::unique_ptr<LockStore>> store = make_store(url);
  if (!store) co_return std::unexpected(store.error());
  co_return co_await with_engine(std::move(*store), std::move(body));
}

}  // namespace weft::inline v0::durable
