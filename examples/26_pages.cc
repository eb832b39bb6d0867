// SPDX-License-Identifier: MIT
// A listing that comes in pages, read as one sequence; and one login for all who read.
//
// Run: build/release/examples/26_pages
// See: two readers at once, and a single login; a reader that stops half-way; one that is cancelled
//      inside of the generator, which is unwound first.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/testing/virtual_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// The server.
Task<std::string> log_in() {
  std::printf("logging in\n");
  co_await sleep_for(10ms);
  co_return "a token";
}
Task<std::vector<std::string>> fetch_page(const std::string& token, int page) {
  co_await sleep_for(5ms);
  std::vector<std::string> names;
  if (token == "a token" && page < 3) {
    for (const char* each : {"a", "b"}) names.push_back(each + std::to_string(page));
  }
  co_return names;
}

// [generator]
using Login = Shared<Task<std::string>>;

Generator<std::string> files(Login login) {
  const std::string& token = co_await login;  // the first who comes here logs in
  for (int page = 0;; ++page) {
    std::vector<std::string> names = co_await fetch_page(token, page);
    if (names.empty()) co_return;
    for (std::string& name : names) co_yield std::move(name);
  }
}

Task<> list(std::string reader, Login login) {
  Generator<std::string> all = files(login);
  while (std::optional<std::string> name = co_await all.next())
    std::printf("%s: %s\n", reader.c_str(), name->c_str());
}
// [/generator]

Task<std::string> third(Login login) {
  Generator<std::string> all = files(login);
  for (int skipped = 0; skipped < 2; ++skipped) static_cast<void>(co_await all.next());
  std::optional<std::string> name = co_await all.next();
  co_return name.value();
}  // the generator rests at its co_yield, and dies here

Task<> async_main() {
  Login login(log_in());
  auto readers = [&](Nursery& n) -> Task<NurseryEnd> {
    n.start(list("one", login));
    n.start(list("two", login));
    co_return join;
  };
  co_await with_nursery(readers);

  std::string name = co_await third(login);
  std::printf("the third: %s\n", name.c_str());

  auto in_time = co_await timeout(7ms, list("late", login));
  std::printf("%s\n", in_time ? "all of it" : "out of time");
}

int main() {
  testing::VirtualLoop loop;
  run(loop, async_main());
}
