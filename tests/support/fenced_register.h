// SPDX-License-Identifier: MIT
#pragma once
// A number behind a FenceGate, in one process, and those who count in it, in others: what a lock protects in tests.
//
//     FencedRegister number(history);                 // where the resource is
//     nursery.start(number.serve(std::move(end)));       // for each who has the other end of a socket pair
//
//     RegisterClient number(0);                         // there: the end is its standard input
//     std::optional<std::uint64_t> value = number.read("3.1", token);
//     bool there = number.write("3.1", token, *value + 1);
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "support/lock_history.h"
#include "weft/durable/fence_gate.h"
#include "weft/io/descriptor.h"
#include "weft/weft.h"

namespace weft::test {

class FencedRegister {
 public:
  explicit FencedRegister(const std::string& history) : log_(history) {}

  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  // Updates by those whose names begin so, until their first dot.
  [[nodiscard]] std::uint64_t updates_of(const std::string& process) const {
    auto place = updates_.find(process);
    return place == updates_.end() ? 0 : place->second;
  }

  // Until the other end is closed.
  Task<void> serve(Descriptor end) {
    std::string came;
    std::array<std::byte, 512> bytes;
    while (true) {
      Result<std::size_t> count = co_await end.read(bytes);
      if (!count || *count == 0) co_return;
      came.append(reinterpret_cast<const char*>(bytes.data()), *count);
      for (std::size_t at; (at = came.find('\n')) != came.npos; came.erase(0, at + 1)) {
        std::string answer = this->answer(came.substr(0, at)) + "\n";
        // It may be dead by now. A line has room in its socket's buffer.
        Result<std::size_t> sent = co_await end.write(std::as_bytes(std::span(answer)));
        if (!sent) co_return;
      }
    }
  }

 private:
  std::string answer(const std::string& question) {
    LockEvent event;
    std::string name;
    std::istringstream words(question);
    words >> name >> event.who >> event.token >> event.value;
    event.what = name == "r" ? LockEvent::read : LockEvent::write;
    bool passed = gate_.admit("register", event.token, [&] {
      if (event.what == LockEvent::read) {
        event.value = value_;
      } else {
        value_ = event.value;
        ++updates_[event.who.substr(0, event.who.find('.'))];
      }
      note(event);
    });
    if (passed) return std::to_string(event.value);
    event.what = LockEvent::refused;
    note(event);
    return "-";
  }
  void note(LockEvent event) {
    event.begin = event.end = boot_now();
    log_.add(event);
  }

  HistoryLog log_;
  durable::FenceGate gate_;
  std::uint64_t value_ = 0;
  std::map<std::string, std::uint64_t> updates_;
};

// Blocks its loop until the answer is there: a moment. So a question and its answer are one thing, which no cancellation divides.
class RegisterClient {
 public:
  explicit RegisterClient(int end) noexcept : end_(end) {}

  // Nothing: the token is too old.
  std::optional<std::uint64_t> read(const std::string& who, std::uint64_t token) {
    return ask("r " + who + " " + std::to_string(token) + " 0\n");
  }
  bool write(const std::string& who, std::uint64_t token, std::uint64_t value) {
    return ask("w " + who + " " + std::to_string(token) + " " + std::to_string(value) + "\n")
        .has_value();
  }

 private:
  std::optional<std::uint64_t> ask(const std::string& question) {
    if (::write(end_, question.data(), question.size()) != static_cast<ssize_t>(question.size()))
      ::_exit(kAlone);
    std::string answer;
    for (char byte = 0; byte != '\n'; answer += byte) {
      if (::read(end_, &byte, 1) != 1) ::_exit(kAlone);
    }
    std::uint64_t value = 0;
    auto [rest, error] = std::from_chars(answer.data(), answer.data() + answer.size(), value);
    if (error != std::errc()) return std::nullopt;
    return value;
  }

  static constexpr int kAlone = 9;  // whoever has the register has ended
  int end_;
};

}  // namespace weft::test
