// SPDX-License-Identifier: MIT
// Boost.Asio in suite core: awaitables on one io_context, run by one thread.
//
// Used as its documentation uses it, and at its best within that: concurrency hint 1; everything
// is started from inside run(), where Asio's recycling allocator serves frames and handlers (from
// outside, spawning costs a third more); default executor type, default allocator.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/version.hpp>
#include <exception>
#include <utility>

#include "core/asio_child.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kBatch = 1000;  // the same in every contestant
constexpr int kOneThread = 1;

asio::awaitable<void> await_children(std::size_t n, std::string& answer) {
  int sum = 0;
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) sum ^= co_await asio_child(static_cast<int>(i & 1023));
  answer = watch.per_operation(n);
  [[maybe_unused]] volatile int keep = sum;
}

std::string await_child(std::size_t n) {
  std::string answer;
  asio::io_context context(kOneThread);
  asio::co_spawn(context, await_children(n, answer), asio::detached);
  context.run();
  return answer;
}

// The last child's completion cancels the timer that the parent waits for: two timer operations
// per batch.
asio::awaitable<void> spawn_batches(asio::io_context& context, std::size_t n, std::string& answer) {
  asio::steady_timer all_ended(context);
  std::size_t ended = 0;
  const std::size_t batches = (n + kBatch - 1) / kBatch;
  Stopwatch watch;
  for (std::size_t batch = 0; batch < batches; ++batch) {
    std::size_t joined = 0;
    all_ended.expires_at(asio::steady_timer::time_point::max());
    for (std::size_t i = 0; i < kBatch; ++i) {
      asio::co_spawn(context, asio_leaf(ended), [&joined, &all_ended](std::exception_ptr) {
        if (++joined == kBatch) all_ended.cancel();
      });
    }
    boost::system::error_code cancelled;
    co_await all_ended.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  answer = watch.per_operation(ended);
}

std::string spawn_join(std::size_t n) {
  std::string answer;
  asio::io_context context(kOneThread);
  asio::co_spawn(context, spawn_batches(context, n, answer), asio::detached);
  context.run();
  return answer;
}

struct Yielders {
  std::size_t yields_each;
  int started = 0;
  int ended = 0;
  Stopwatch watch = {};
  std::string answer = {};
};

template <class Token>
asio::awaitable<void> yielder(Yielders& both, Token token) {
  if (++both.started == 2) both.watch.restart();
  for (std::size_t i = 0; i < both.yields_each; ++i) co_await asio::post(token);
  if (++both.ended == 2) both.answer = both.watch.per_operation(2 * both.yields_each);
}

template <class Token>
std::string yield_between_two(std::size_t n, Token token) {
  Yielders both{.yields_each = n / 2};
  asio::io_context context(kOneThread);
  asio::co_spawn(context, yielder(both, token), asio::detached);
  asio::co_spawn(context, yielder(both, token), asio::detached);
  context.run();
  return std::move(both.answer);
}

std::string yield(std::size_t n) { return yield_between_two(n, asio::use_awaitable); }

// A completion token less known, and cheaper, than use_awaitable. Printed for reference.
std::string yield_deferred(std::size_t n) { return yield_between_two(n, asio::deferred); }

constexpr Measure kMeasures[] = {
    {"await_child", await_child},
    {"spawn_join", spawn_join},
    {"yield", yield},
    {"yield_deferred", yield_deferred},
};

}  // namespace
}  // namespace weft::bench

int main() {
  return weft::bench::serve("Boost.Asio awaitable, Boost " BOOST_LIB_VERSION
                            ", io_context(1) on one thread; clang " __clang_version__,
                            weft::bench::kMeasures);
}
