// SPDX-License-Identifier: MIT
#pragma once
// What happened to one lock among many processes, line by line in a file, and whether it may have happened so.
//
//     HistoryLog log(path);                                   // in every process
//     log.add({.what = LockEvent::hold, .who = "3.1", .token = 7, .begin = asked, .end = boot_now()});
//     HistoryCheck check = check_history(read_history(path));
//     EXPECT_EQ(check.violations, Violations());
//
// The lock protects a register that has a gate (fenced_register.h). Times are CLOCK_BOOTTIME's, of one machine, so they can be compared.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "weft/base/unique_fd.h"

namespace weft::test {

// Nanoseconds of CLOCK_BOOTTIME.
inline std::int64_t boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct LockEvent {
  enum What {
    // By who has the lock.
    hold,  // asked for at `begin`, in the section at `end`
    sure,  // at `begin` its lease had time left
    left,  // its section ended at `end`, and on_acquire() said that it was held until then
    lost,  // on_acquire() said that it was not
    done,  // the register has confirmed the update to `value`
    // By the register, in the order in which it was asked.
    read,     // it was `value`
    write,    // it is `value`
    refused,  // the gate knew a greater token
  };
  static constexpr std::array<const char*, 8> kNames{"hold", "sure", "left",  "lost",
                                                     "done", "read", "write", "refused"};

  What what = hold;
  std::string who{};  // never two of one name
  std::uint64_t token = 0;
  std::int64_t begin = 0, end = 0;
  std::uint64_t value = 0;

  [[nodiscard]] std::string line() const {
    std::ostringstream text;
    text << kNames[what] << ' ' << who << ' ' << token << ' ' << begin << ' ' << end << ' ' << value
         << '\n';
    return text.str();
  }
  [[nodiscard]] static LockEvent parse(const std::string& line) {
    LockEvent event;
    std::string name;
    std::istringstream words(line);
    words >> name >> event.who >> event.token >> event.begin >> event.end >> event.value;
    const auto* place = std::ranges::find(kNames, name);
    if (!words || place == kNames.end()) throw std::runtime_error("no line of a history: " + line);
    event.what = static_cast<What>(place - kNames.begin());
    return event;
  }
};
using LockEvents = std::vector<LockEvent>;

// Appends a line at once or not at all, also if the process is killed: several may have the file.
class HistoryLog {
 public:
  explicit HistoryLog(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  void add(const LockEvent& event) const {
    std::string line = event.line();
    if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("a history cannot be written");
  }

 private:
  UniqueFd file_;
};

inline LockEvents read_history(const std::string& path) {
  LockEvents all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) all.push_back(LockEvent::parse(line));
  return all;
}

using Violations = std::vector<std::string>;

struct HistoryCheck {
  Violations violations;  // the first kViolationsMax
  std::size_t holds = 0, losses = 0, refusals = 0;
  std::uint64_t updates = 0;
  static constexpr std::size_t kViolationsMax = 20;
};

// The rules, as docs/design/durable_mutex.md promises them:
//
//   tokens      each is one holder's; a greater one is not given out before a smaller one was asked for.
//   holders     whose lease had time left, or who was told that it held to its end, had the lock alone: nobody with a greater token
//               was in the section yet. (Not asked of processes whose clocks differ.)
//   gate        who passes it has a token not smaller than anybody's before: those who passed do not overlap.
//   register    updates are 1, 2, 3 …: none is lost, none comes twice; whatever was confirmed is there once, by who held the token.
class HistoryChecker {
 public:
  explicit HistoryChecker(bool clocks_agree) : clocks_agree_(clocks_agree) {}

  HistoryCheck check(const LockEvents& events) {
    for (const LockEvent& event : events) collect(event);
    check_tokens();
    check_confirmed();
    return std::move(result_);
  }

 private:
  struct Holder {
    std::string who;
    std::int64_t asked = 0, began = 0;
    std::int64_t sure = 0;  // the last moment at which it was alone
    std::string because;
  };

  void collect(const LockEvent& event) {
    switch (event.what) {
      case LockEvent::hold:
        return begin(event);
      case LockEvent::sure:
        return believe(event, event.begin, "its lease had time left");
      case LockEvent::left:
        return believe(event, event.end, "it was told that it held to its end");
      case LockEvent::lost:
        ++result_.losses;
        return;
      case LockEvent::done:
        confirmed_.push_back(event);
        return;
      case LockEvent::refused:
        ++result_.refusals;
        if (event.token >= greatest_) bad(event, "was refused, and nobody greater was there");
        return;
      case LockEvent::read:
        return pass(event);
      case LockEvent::write:
        pass(event);
        return update(event);
    }
  }
  void begin(const LockEvent& event) {
    ++result_.holds;
    auto [place, fresh] =
        holders_.try_emplace(event.token, Holder{event.who, event.begin, event.end, 0, ""});
    if (!fresh) bad(event, "has the token of " + place->second.who);
  }
  void believe(const LockEvent& event, std::int64_t when, const char* because) {
    auto place = holders_.find(event.token);
    if (place == holders_.end() || place->second.who != event.who)
      return bad(event, "speaks of a token that it does not have");
    if (when < place->second.sure) return;
    place->second.sure = when;
    place->second.because = because;
  }
  void pass(const LockEvent& event) {
    if (event.token < greatest_) bad(event, "passed the gate after a greater token");
    greatest_ = std::max(greatest_, event.token);
    auto [place, fresh] = passed_.try_emplace(event.token, event.who);
    if (!fresh && place->second != event.who)
      bad(event, "passed the gate with the token of " + place->second);
    if (event.what == LockEvent::read && event.value != result_.updates)
      bad(event, "read what is not there");
  }
  void update(const LockEvent& event) {
    if (event.value != result_.updates + 1) bad(event, "wrote over another's update");
    result_.updates = event.value;
    ++written_[{event.who, event.token, event.value}];
  }

  void check_tokens() {
    std::int64_t asked = 0, alone_until = 0;
    const Holder* alone = nullptr;
    for (const auto& [token, holder] : holders_) {
      asked = std::max(asked, holder.asked);
      LockEvent event{.what = LockEvent::hold,
                      .who = holder.who,
                      .token = token,
                      .begin = holder.asked,
                      .end = holder.began};
      if (clocks_agree_ && holder.began < asked)
        bad(event, "had it before somebody with a smaller token asked");
      // It may have been paused between the grant and its first line: that it began says nothing of when it was alone.
      if (clocks_agree_ && alone && holder.began <= alone_until)
        bad(event, "was in while " + alone->who + " was: " + alone->because);
      if (holder.sure > alone_until) {
        alone_until = holder.sure;
        alone = &holder;
      }
    }
    for (const auto& [token, who] : passed_) {
      auto place = holders_.find(token);
      if (place == holders_.end() || place->second.who != who)
        bad({.what = LockEvent::read, .who = who, .token = token},
            "passed the gate without the lock");
    }
  }
  void check_confirmed() {
    for (const LockEvent& event : confirmed_) {
      auto place = written_.find({event.who, event.token, event.value});
      if (place == written_.end()) {
        bad(event, "is told of an update that is not there");
      } else if (place->second != 1) {
        bad(event, "finds its update there more than once");
      }
    }
  }
  void bad(const LockEvent& event, const std::string& why) {
    if (result_.violations.size() == HistoryCheck::kViolationsMax) return;
    result_.violations.push_back(event.who + " " + why + ": " + event.line());
  }

  bool clocks_agree_;
  HistoryCheck result_;
  std::map<std::uint64_t, Holder> holders_;  // by their tokens
  std::map<std::uint64_t, std::string> passed_;
  std::uint64_t greatest_ = 0;
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, int> written_;
  LockEvents confirmed_;
};

inline HistoryCheck check_history(const LockEvents& events, bool clocks_agree = true) {
  return HistoryChecker(clocks_agree).check(events);
}

}  // namespace weft::test
