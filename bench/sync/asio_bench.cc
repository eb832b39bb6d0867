// SPDX-License-Identifier: MIT
// Boost.Asio in suite sync: awaitables and experimental channels, on an io_context with one thread each.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/version.hpp>
#include <exception>
#include <string>
#include <thread>

#include "harness/contestant.h"

namespace weft::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Executor = asio::io_context::executor_type;  // not a type-erased one

constexpr int kOneThread = 1;
constexpr std::size_t kCapacity = 1024;  // the same in every contestant

template <class Signature>
using LocalChannel =
    asio::experimental::basic_channel<Executor, asio::experimental::channel_traits<>, Signature>;
template <class Signature>
using SharedChannel =
    asio::experimental::basic_concurrent_channel<Executor, asio::experimental::channel_traits<>,
                                                 Signature>;

constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> kToken{};

template <class Channel>
asio::awaitable<void, Executor> produce(Channel& channel, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) co_await channel.async_send(error_code(), i, kToken);
}

// It counts, because close() throws away what is inside.
template <class Channel>
asio::awaitable<void, Executor> consume(Channel& channel, std::size_t n, std::size_t& sum) {
  for (std::size_t i = 0; i < n; ++i) {
    auto [error, item] = co_await channel.async_receive(kToken);
    sum += item;
  }
}

void rethrow(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

template <class Channel>
std::string pass(Channel& channel, asio::io_context& here, asio::io_context& there, std::size_t n) {
  std::size_t sum = 0;
  asio::co_spawn(there, consume(channel, n, sum), rethrow);
  asio::co_spawn(here, produce(channel, n), rethrow);
  Stopwatch watch;
  std::thread other;
  if (&there != &here) other = std::thread([&] { there.run(); });
  here.run();
  if (other.joinable()) other.join();
  if (sum != n * (n - 1) / 2) return "error items were lost";
  return watch.per_operation(n);
}

template <std::size_t capacity>
std::string one_loop(std::size_t n) {
  asio::io_context context(kOneThread);
  LocalChannel<void(error_code, std::size_t)> channel(context.get_executor(), capacity);
  return pass(channel, context, context, n);
}

template <std::size_t capacity>
std::string two_loops(std::size_t n) {
  asio::io_context here(kOneThread);
  asio::io_context there(kOneThread);
  SharedChannel<void(error_code, std::size_t)> channel(here.get_executor(), capacity);
  return pass(channel, here, there, n);
}

constexpr Measure kMeasures[] = {
    {"channel_one_loop", one_loop<kCapacity>},
    {"channel_two_loops", two_loops<kCapacity>},
    {"rendezvous_one_loop", one_loop<0>},
    {"rendezvous_two_loops", two_loops<0>},
};

}  // namespace
}  // namespace weft::bench

int main() {
  return weft::bench::serve("Boost.Asio awaitables, Boost " BOOST_LIB_VERSION
                            ", io_context(1) per thread; clang " __clang_version__,
                            weft::bench::kMeasures);
}
