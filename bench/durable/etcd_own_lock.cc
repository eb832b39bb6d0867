// SPDX-License-Identifier: MIT
// etcd's own lock endpoint in suite durable, by the same HTTP client. Known to be unsafe (PARTS); here for its speed.
#include <weft/http/client.h>
#include <weft/weft.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "durable/lock_bench.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

constexpr std::size_t kProcesses = 4;

class OwnLock {
 public:
  explicit OwnLock(std::uint16_t port) : at_("http://127.0.0.1:" + std::to_string(port)) {}

  Task<void> begin() {
    std::string answer = co_await call("/v3/lease/grant", R"({"TTL":60})");
    lease_ = field(answer, "ID");
  }
  Task<void> lock() {
    std::string request = R"({"name":"YmVuY2g=","lease":")" + lease_ + R"("})";
    std::string answer = co_await call("/v3/lock/lock", request);
    key_ = field(answer, "key");
  }
  Task<void> unlock() {
    std::string request = R"({"key":")" + key_ + R"("})";
    co_await call("/v3/lock/unlock", request);
  }

 private:
  Task<std::string> call(std::string path, std::string body) {
    http::ClientRequest request(http::Method::post, or_throw(http::Url::parse(at_ + path)));
    request.body = http::RequestBody(std::move(body));
    http::ClientResponse response = or_throw(co_await client_.request(std::move(request)));
    if (response.status() != 200)
      throw std::runtime_error(path + " answers " + std::to_string(response.status()));
    co_return or_throw(co_await response.body().read_all());
  }
  static std::string field(const std::string& answer, const std::string& name) {
    std::size_t begin = answer.find("\"" + name + "\":\"");
    if (begin == answer.npos) throw std::runtime_error("no " + name + " in " + answer);
    begin += name.size() + 4;
    return answer.substr(begin, answer.find('"', begin) - begin);
  }

  http::Client client_;
  std::string at_, lease_, key_;
};

EtcdServer& server() {
  static EtcdServer one;
  return one;
}

template <class Body>
void with_lock(std::uint16_t port, Body body) {
  auto root = [&]() -> Task<void> {
    OwnLock lock(port);
    co_await lock.begin();
    co_await body(lock);
  };
  EventLoop loop;
  run(loop, root());
}

std::string pair(std::size_t n) {
  std::string answer;
  auto body = [&](OwnLock& lock) -> Task<void> {
    Stopwatch watch;
    for (std::size_t i = 0; i < n; ++i) {
      co_await lock.lock();
      co_await lock.unlock();
    }
    answer = watch.per_operation(n);
  };
  with_lock(server().port(), body);
  return answer;
}

std::string pair_p99(std::size_t n) {
  std::vector<double> samples;
  auto body = [&](OwnLock& lock) -> Task<void> {
    for (std::size_t i = 0; i < n; ++i) {
      auto start = std::chrono::steady_clock::now();
      co_await lock.lock();
      co_await lock.unlock();
      samples.push_back(
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
              .count());
    }
  };
  with_lock(server().port(), body);
  return percentile(samples, 0.99);
}

std::string handover(std::size_t n) {
  std::size_t each = n / kProcesses;
  double taken = 0;
  auto body = [&](OwnLock& lock) -> Task<void> {
    co_await lock.lock();
    Event begin;
    auto release = [&]() -> Task<void> {
      co_await begin.wait();
      co_await lock.unlock();
    };
    auto work = [&] {
      std::vector<std::string> command{"/proc/self/exe", "--worker",
                                       std::to_string(server().port()), std::to_string(each)};
      auto set = [](void* event) { static_cast<Event*>(event)->set(); };
      taken = time_workers(command, kProcesses, set, &begin);
    };
    co_await all_of(release(), blocking(work));
  };
  with_lock(server().port(), body);
  return wall_only(taken / static_cast<double>(each * kProcesses));
}

int work(std::uint16_t port, std::size_t count) {
  auto body = [&](OwnLock& lock) -> Task<void> {
    say_ready();
    for (std::size_t i = 0; i < count; ++i) {
      co_await lock.lock();
      co_await lock.unlock();
    }
  };
  with_lock(port, body);
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (argc == 4 && std::string_view(argv[1]) == "--worker") {
    return work(static_cast<std::uint16_t>(std::atoi(argv[2])), std::strtoul(argv[3], nullptr, 10));
  }
  constexpr Measure kMeasures[] = {{"pair", pair}, {"pair_p99", pair_p99}, {"handover", handover}};
  return serve("etcd's own /v3/lock, by weft's HTTP client", kMeasures);
}
