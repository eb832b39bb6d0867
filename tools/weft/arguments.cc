// SPDX-License-Identifier: MIT
#include "arguments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace weft::tool {

namespace {

constexpr std::size_t kHelpColumns = 80;
constexpr std::size_t kFirstColumnMax = 34;  // a longer one has its help on the next line
constexpr std::size_t kSlipsMax = 2;         // of the keyboard, in a word that was meant
constexpr std::chrono::milliseconds kDurationMax = std::chrono::hours(365 * 24);

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr Unit kUnits[] = {{"h", 3600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

// Changes of one letter that make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t before = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t changed = before + (a[i] == b[j] ? 0 : 1);
      before = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, before + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t slips = kSlipsMax + 1;
  for (std::string_view name : names) {
    std::size_t here = distance(word, name);
    if (here < slips && here < name.size()) {
      slips = here;
      best = name;
    }
  }
  return best;
}

Value flag(bool& on) {
  auto take = [&on](std::string_view) -> std::string {
    on = true;
    return {};
  };
  return {{}, {}, std::move(take)};
}

Value text(std::string name, std::string& into) {
  auto take = [&into](std::string_view given) -> std::string {
    if (given.empty()) return "it is empty";
    into = given;
    return {};
  };
  return {std::move(name), into, std::move(take)};
}

Value text(std::string name, std::optional<std::string>& into) {
  auto take = [&into](std::string_view given) -> std::string {
    if (given.empty()) return "it is empty";
    into = given;
    return {};
  };
  return {std::move(name), into.value_or(""), std::move(take)};
}

Value texts(std::string name, std::vector<std::string>& into) {
  auto take = [&into](std::string_view given) -> std::string {
    into.emplace_back(given);
    return {};
  };
  return {std::move(name), {}, std::move(take)};
}

std::optional<std::chrono::milliseconds> read_duration(std::string_view given) {
  double number = 0;
  const char* end = given.data() + given.size();
  auto [behind, error] = std::from_chars(given.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(behind, end);
  if (unit.empty()) unit = "s";
  const Unit* found = std::ranges::find(kUnits, unit, &Unit::name);
  if (found == std::end(kUnits)) return std::nullopt;
  number *= static_cast<double>(found->milliseconds);
  // Not so for nan, either.
  if (!(number >= 1 && number <= static_cast<double>(kDurationMax.count()))) return std::nullopt;
  return std::chrono::milliseconds(std::llround(number));
}

std::string to_string(std::chrono::milliseconds time) {
  const Unit* unit = std::ranges::find_if(
      kUnits, [&](const Unit& each) { return time.count() % each.milliseconds == 0; });
  return std::to_string(time.count() / unit->milliseconds).append(unit->name);
}

namespace {

template <class Into>
Value duration_into(std::string name, std::string initial, Into& into) {
  auto take = [&into](std::string_view given) -> std::string {
    std::optional<std::chrono::milliseconds> time = read_duration(given);
    if (!time) return "a time is wanted, such as 30s, 500ms or 2m";
    into = *time;
    return {};
  };
  return {std::move(name), std::move(initial), std::move(take)};
}

}  // namespace

Value duration(std::string name, std::chrono::milliseconds& into) {
  return duration_into(std::move(name), to_string(into), into);
}
Value duration(std::string name, std::optional<std::chrono::milliseconds>& into) {
  return duration_into(std::move(name), into ? to_string(*into) : "", into);
}

// --- Reading --------------------------------------------------------------------------------------------

const CommandLine::Option* CommandLine::find(std::string_view name) const noexcept {
  auto found = std::ranges::find(options_, name, &Option::name);
  return found == options_.end() ? nullptr : &*found;
}

const CommandLine::Option* CommandLine::find(char letter) const noexcept {
  auto found = std::ranges::find(options_, letter, &Option::letter);
  return found == options_.end() ? nullptr : &*found;
}

class CommandLine::Reader {
 public:
  Reader(const CommandLine& line, std::span<const std::string_view> words)
      : line_(line), words_(words) {}

  bool read() {
    bool only_operands = false;
    while (!words_.empty()) {
      std::string_view word = next();
      if (word == "--" && line_.command_ && operands_ == line_.operands_.size()) {
        take_command();
      } else if (only_operands || word == "-" || !word.starts_with('-')) {
        take_operand(word);
      } else if (word == "--") {
        only_operands = true;
      } else if (word == "--help" || word == "-h") {
        return false;
      } else if (word.starts_with("--")) {
        take_name(word.substr(2));
      } else {
        take_letters(word.substr(1));
      }
    }
    for (std::size_t i = operands_; i < line_.operands_.size(); ++i) {
      const Value& value = line_.operands_[i].value;
      if (value.initial.empty()) fail(value.name + " is missing", true);
    }
    if (line_.command_ && !has_command_) fail("-- COMMAND is missing", true);
    return true;
  }

 private:
  std::string_view next() {
    std::string_view word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }

  [[noreturn]] void fail(const std::string& why, bool see_help = false) const {
    throw BadUsage(line_.name_ + ": " + why + (see_help ? ": see " + line_.name_ + " --help" : ""));
  }

  void take(const Value& value, const std::string& what, std::string_view given) const {
    std::string refused = value.take(given);
    if (refused.empty()) return;
    fail(what + " '" + std::string(given) + "': " + refused);
  }

  void take_operand(std::string_view word) {
    if (operands_ == line_.operands_.size()) {
      if (line_.command_) fail("'" + std::string(word) + "': put -- before the command");
      fail("'" + std::string(word) + "' is one word too many", true);
    }
    const Value& value = line_.operands_[operands_++].value;
    take(value, value.name, word);
  }

  void take_command() {
    has_command_ = !words_.empty();
    while (!words_.empty()) take(line_.command_->value, line_.command_->value.name, next());
  }

  void take_name(std::string_view word) {
    std::size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    const Option* option = line_.find(name);
    std::string shown = "--" + std::string(name);
    if (!option) fail_unknown(shown, name);
    if (option->value.name.empty()) {
      if (equals != word.npos) fail(shown + " takes no value");
      take(option->value, shown, {});
    } else if (equals != word.npos) {
      take(option->value, shown, word.substr(equals + 1));
    } else {
      take(option->value, shown, value_of(shown, option->value));
    }
  }

  void take_letters(std::string_view letters) {
    while (!letters.empty()) {
      std::string shown = "-" + std::string(letters.substr(0, 1));
      const Option* option = line_.find(letters.front());
      letters.remove_prefix(1);
      if (!option) fail_unknown(shown, {});
      if (option->value.name.empty()) {
        take(option->value, shown, {});
        continue;
      }
      take(option->value, shown, letters.empty() ? value_of(shown, option->value) : letters);
      return;
    }
  }

  std::string_view value_of(const std::string& shown, const Value& value) {
    if (words_.empty()) fail(shown + " wants a value: " + shown + " " + value.name);
    return next();
  }

  [[noreturn]] void fail_unknown(const std::string& shown, std::string_view name) const {
    std::vector<std::string_view> names = {"help"};
    for (const Option& option : line_.options_) names.push_back(option.name);
    std::string_view meant = nearest(name, names);
    if (meant.empty()) fail("there is no option " + shown, true);
    fail("there is no option " + shown + ": did you mean --" + std::string(meant) + "?");
  }

  const CommandLine& line_;
  std::span<const std::string_view> words_;
  std::size_t operands_ = 0;
  bool has_command_ = false;
};

bool CommandLine::read(std::span<const std::string_view> words) const {
  return Reader(*this, words).read();
}

std::size_t CommandLine::words_of_option(std::string_view word) const noexcept {
  if (word.starts_with("--")) {
    std::size_t equals = word.find('=');
    const Option* option = find(word.substr(2, equals - 2));
    if (!option) return 0;
    return option->value.name.empty() || equals != word.npos ? 1 : 2;
  }
  for (word.remove_prefix(1); !word.empty(); word.remove_prefix(1)) {
    const Option* option = find(word.front());
    if (!option) return 0;
    if (!option->value.name.empty()) return word.size() == 1 ? 2 : 1;
  }
  return 1;
}

std::size_t CommandLine::first_operand(std::span<const std::string_view> words) const {
  for (std::size_t at = 0; at < words.size();) {
    std::string_view word = words[at];
    if (word == "-" || !word.starts_with('-')) return at;
    std::size_t count = words_of_option(word);
    if (count == 0) break;
    at += count;
  }
  return words.size();
}

// --- The help -------------------------------------------------------------------------------------------

std::string in_columns(std::span<const HelpRow> rows) {
  std::size_t first = 0;
  for (const HelpRow& row : rows) {
    if (row.what.size() <= kFirstColumnMax) first = std::max(first, row.what.size());
  }
  const std::string indent(first + 4, ' ');
  std::string text;
  for (const HelpRow& row : rows) {
    std::string line = "  " + row.what;
    line.resize(std::max(line.size(), first + 4), ' ');
    if (row.what.size() > first) {
      text += line + "\n";
      line = indent;
    }
    bool begun = false;
    for (std::string_view rest = row.help; !rest.empty();) {
      std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (begun && line.size() + 1 + word.size() > kHelpColumns) {
        text += line + "\n";
        line = indent;
        begun = false;
      }
      line.append(begun ? " " : "").append(word);
      begun = true;
    }
    text += line + "\n";
  }
  return text;
}

std::string CommandLine::help() const {
  std::string text = "usage: " + name_ + " [OPTION]...";
  for (const Operand& operand : operands_) {
    const Value& value = operand.value;
    text += value.initial.empty() ? " " + value.name : " [" + value.name + "]";
  }
  if (command_) text += " -- " + command_->value.name;
  text += "\n" + summary_ + "\n\n";

  auto help_of = [](const std::string& help, const Value& value) {
    return value.initial.empty() ? help : help + " (" + value.initial + ")";
  };
  std::vector<HelpRow> rows;
  for (const Operand& operand : operands_) {
    rows.push_back({operand.value.name, help_of(operand.help, operand.value)});
  }
  if (command_) rows.push_back({"COMMAND", command_->help});
  if (!rows.empty()) text += in_columns(rows) + "\n";

  rows.clear();
  for (const Option& option : options_) {
    std::string what = option.letter ? std::string("-") + option.letter + ", " : "    ";
    what += "--" + option.name;
    if (!option.value.name.empty()) what += " " + option.value.name;
    rows.push_back({std::move(what), help_of(option.help, option.value)});
  }
  rows.push_back({"-h, --help", "print this"});
  text += in_columns(rows);
  if (!notes_.empty()) text += "\n";
  for (const std::string& note : notes_) text += note + "\n";
  return text;
}

}  // namespace weft::tool
