// SPDX-License-Identifier: MIT
#include "interrupts.h"

#include <csignal>
#include <utility>

#include "weft/core/combinators.h"
#include "weft/core/primitives.h"

namespace weft::tool {

namespace {

bool is_ignored(int signal) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

Interrupts::Interrupts(std::initializer_list<int> numbers) {
  for (int each : numbers) {
    if (!is_ignored(each)) signals_.push_back(SignalSet({each}));
  }
}

Task<int> Interrupts::next() {
  if (signals_.empty()) co_await suspend_forever();
  std::vector<Task<int>> waits;
  for (SignalSet& each : signals_) waits.push_back(each.next());
  auto first = co_await any_of(std::move(waits));
  co_return *first[first.index()];
}

}  // namespace weft::tool
