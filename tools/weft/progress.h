// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::Progress: how much of something is there, on one line of the terminal.
//
//     report.bin   42% [=======>            ] 12.3 of 29.0 MiB, 4.5 MiB/s, 0:04 left
//
// Threads        one at a time.
// Cost           a clock per add(); a write ten times a second.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::tool {

struct ProgressState {
  std::string name;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> total{};  // nothing: it is not known
  std::chrono::nanoseconds since_begin{};
  bool is_over = false;
};

// As it is shown, without a line break; no longer than `columns`.
[[nodiscard]] std::string progress_line(const ProgressState& state, std::size_t columns);
// "12.3 MiB"
[[nodiscard]] std::string in_units(std::uint64_t bytes);

class Progress {
 public:
  static constexpr std::chrono::milliseconds kRedraw{100};

  // `terminal`: a descriptor that is one, or -1: nothing is shown.
  Progress(int terminal, std::string name, std::optional<std::uint64_t> total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Without finish(): clears the line, for an error to take its place.
  ~Progress();

  void add(std::size_t bytes);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  int terminal_;
  ProgressState state_;
  Clock::time_point begin_, drawn_;
};

}  // namespace weft::tool
