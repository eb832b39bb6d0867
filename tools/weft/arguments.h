// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::CommandLine: the options of one command, as a table; reading them and the text of --help both come from it, so
// that the help cannot say what is not so.
//
//     std::uint16_t port = 8080;
//     CommandLine line("weft serve", "Serves the files of a directory over HTTP.");
//     line.operand("the directory", text("DIR", directory));
//     line.option('p', "port", "listen there; 0: any port that is free", number("PORT", port, 0, 65535));
//     if (!line.read(words)) return 0;                   // --help was asked for, and printed
//
// What an option is when it is not given is what its variable holds when it enters the table; the help says so.
//
// Takes          --name VALUE, --name=VALUE, -n VALUE, -nVALUE, switches -abc; "--" ends the options. Of a line with a
//                command(), the "--" behind its operands begins that.
// Errors         BadUsage: what() is one line that says what to do.
// Threads        one.
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::tool {

// The user asked for what there is not.
class BadUsage : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// How the value of an option is read, and what the help says of it.
struct Value {
  std::string name{};     // "PORT"; empty: a switch, which has none
  std::string initial{};  // what holds without the option; empty: nothing to say
  // Returns: why the text will not do; empty: it is taken.
  std::function<std::string(std::string_view)> take{};
};

[[nodiscard]] Value flag(bool& on);
[[nodiscard]] Value text(std::string name, std::string& into);
[[nodiscard]] Value text(std::string name, std::optional<std::string>& into);
[[nodiscard]] Value texts(std::string name, std::vector<std::string>& into);
// 30s, 500ms, 2m, 1.5h; a number alone is seconds. From 1 ms to a year.
[[nodiscard]] Value duration(std::string name, std::chrono::milliseconds& into);
[[nodiscard]] Value duration(std::string name, std::optional<std::chrono::milliseconds>& into);
// Nothing for what is none. The other way: in the greatest unit of which it is a whole number.
[[nodiscard]] std::optional<std::chrono::milliseconds> read_duration(std::string_view given);
[[nodiscard]] std::string to_string(std::chrono::milliseconds time);

template <class Number>
[[nodiscard]] Value number(std::string name, Number& into, Number from, Number to) {
  auto take = [&into, from, to](std::string_view given) -> std::string {
    Number read{};
    auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), read);
    if (error == std::errc() && end == given.data() + given.size() && read >= from && read <= to) {
      into = read;
      return {};
    }
    return "a number from " + std::to_string(from) + " to " + std::to_string(to) + " is wanted";
  };
  return {std::move(name), std::to_string(into), std::move(take)};
}

// One of several words.
template <class T>
[[nodiscard]] Value choice(T& into, std::vector<std::pair<std::string_view, T>> choices) {
  std::string names, initial;
  for (const auto& [name, value] : choices) {
    names.append(names.empty() ? "" : "|").append(name);
    if (value == into) initial = name;
  }
  auto take = [&into, names, choices = std::move(choices)](std::string_view given) -> std::string {
    for (const auto& [name, value] : choices) {
      if (name != given) continue;
      into = value;
      return {};
    }
    return "one of " + names + " is wanted";
  };
  return {names, std::move(initial), std::move(take)};
}

class CommandLine {
 public:
  // `name`: as the user calls it, "weft serve".
  CommandLine(std::string name, std::string summary)
      : name_(std::move(name)), summary_(std::move(summary)) {}

  // What is no option, in this order. A value with an `initial` may be left out.
  void operand(std::string help, Value value) {
    operands_.push_back({std::move(help), std::move(value)});
  }
  // What stands behind "--", at least one word: as it is, options or not.
  void command(std::string help, Value each) { command_ = {std::move(help), std::move(each)}; }
  // `letter`: 0 if there is none. A value that is given twice is the later one.
  void option(char letter, std::string name, std::string help, Value value) {
    options_.push_back({letter, std::move(name), std::move(help), std::move(value)});
  }
  // Lines that the help ends with.
  void note(std::string text) { notes_.push_back(std::move(text)); }

  // Returns: false if the help was asked for; help() has it.
  [[nodiscard]] bool read(std::span<const std::string_view> words) const;
  // Returns: where the first word is that is neither an option nor the value of one; the number of words if there is none
  // before a "--", a --help or an option that the table does not have. Takes nothing.
  [[nodiscard]] std::size_t first_operand(std::span<const std::string_view> words) const;
  [[nodiscard]] std::string help() const;

 private:
  struct Operand {
    std::string help;
    Value value;
  };
  struct Option {
    char letter;
    std::string name, help;
    Value value;
  };
  class Reader;

  [[nodiscard]] const Option* find(std::string_view name) const noexcept;
  [[nodiscard]] const Option* find(char letter) const noexcept;
  // Of a word that begins with '-': how many words it is, 0 if it is no option of the table.
  [[nodiscard]] std::size_t words_of_option(std::string_view word) const noexcept;

  std::string name_, summary_;
  std::vector<Operand> operands_;
  std::optional<Operand> command_;
  std::vector<Option> options_;
  std::vector<std::string> notes_;
};

// The one of `names` that `word` is a slip of the keyboard away from; empty: none is.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> names);

// Rows of two columns, the second wrapped: "  -p, --port PORT   listen there".
struct HelpRow {
  std::string what, help;
};
[[nodiscard]] std::string in_columns(std::span<const HelpRow> rows);

}  // namespace weft::tool
