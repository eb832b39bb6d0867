// SPDX-License-Identifier: MIT
#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace weft::tool {

namespace {

constexpr std::size_t kBarMax = 40;
constexpr std::size_t kBarMin = 8;  // a shorter one says nothing
constexpr std::size_t kNameMax = 24;
constexpr std::size_t kColumns = 80;  // of a terminal that does not say

struct Unit {
  const char* name;
  double bytes;
};

Unit unit_for(std::uint64_t bytes) {
  constexpr std::array kUnits = {Unit{"KiB", 1024.0}, Unit{"MiB", 1024.0 * 1024},
                                 Unit{"GiB", 1024.0 * 1024 * 1024},
                                 Unit{"TiB", 1024.0 * 1024 * 1024 * 1024}};
  Unit unit{"B", 1};
  for (const Unit& larger : kUnits) {
    if (static_cast<double>(bytes) >= larger.bytes) unit = larger;
  }
  return unit;
}

std::string number_in(std::uint64_t bytes, const Unit& unit) {
  char text[32];
  std::snprintf(text, sizeof text, unit.bytes == 1 ? "%.0f" : "%.1f",
                static_cast<double>(bytes) / unit.bytes);
  return text;
}

std::string clock_of(std::uint64_t seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu:%02llu", static_cast<unsigned long long>(seconds / 60),
                static_cast<unsigned long long>(seconds % 60));
  return text;
}

std::size_t columns_of(int terminal) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumns;
  return size.ws_col;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(fd, text.data(), text.size());
    if (count <= 0) return;  // it is only a bar
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string in_units(std::uint64_t bytes) {
  Unit unit = unit_for(bytes);
  return number_in(bytes, unit) + " " + unit.name;
}

std::string progress_line(const ProgressState& state, std::size_t columns) {
  std::string name = state.name.substr(0, kNameMax);
  double seconds = std::chrono::duration<double>(state.since_begin).count();
  std::uint64_t rate =
      seconds > 0 ? static_cast<std::uint64_t>(static_cast<double>(state.bytes) / seconds) : 0;

  std::string amount = in_units(state.bytes);
  if (state.total && !state.is_over) {
    Unit unit = unit_for(*state.total);
    amount =
        number_in(state.bytes, unit) + " of " + number_in(*state.total, unit) + " " + unit.name;
  }
  std::string tail = amount + ", " + in_units(rate) + "/s";
  if (state.is_over) {
    tail += ", " + clock_of(static_cast<std::uint64_t>(seconds));
  } else if (state.total && rate > 0 && state.bytes <= *state.total) {
    tail += ", " + clock_of((*state.total - state.bytes) / rate) + " left";
  }
  if (!state.total || *state.total == 0) return (name + "  " + tail).substr(0, columns);

  std::uint64_t done = std::min(state.bytes, *state.total);
  double part = static_cast<double>(done) / static_cast<double>(*state.total);
  char percent[8];
  std::snprintf(percent, sizeof percent, "%3d%%", static_cast<int>(part * 100));
  std::size_t rest = name.size() + 2 + 4 + 1 + 2 + 1 + tail.size();  // all but the bar itself
  std::string bar;
  if (columns >= rest + kBarMin) {
    std::size_t width = std::min(kBarMax, columns - rest);
    auto filled = static_cast<std::size_t>(part * static_cast<double>(width));
    bar = std::string(filled, '=');
    if (filled < width) bar += '>';
    bar.resize(width, ' ');
    bar = "[" + bar + "] ";
  }
  return (name + "  " + percent + " " + bar + tail).substr(0, columns);
}

Progress::Progress(int terminal, std::string name, std::optional<std::uint64_t> total)
    : terminal_(terminal), begin_(Clock::now()), drawn_(begin_) {
  state_.name = std::move(name);
  state_.total = total;
  if (terminal_ >= 0) draw(begin_);
}

Progress::~Progress() {
  if (terminal_ >= 0) write_all(terminal_, "\r\x1b[K");
}

void Progress::add(std::size_t bytes) {
  state_.bytes += bytes;
  if (terminal_ < 0) return;
  Clock::time_point now = Clock::now();
  if (now - drawn_ >= kRedraw) draw(now);
}

void Progress::finish() {
  if (terminal_ < 0) return;
  state_.is_over = true;
  draw(Clock::now());
  write_all(terminal_, "\n");
  terminal_ = -1;
}

void Progress::draw(Clock::time_point now) {
  drawn_ = now;
  state_.since_begin = now - begin_;
  // One column less: in the last one some terminals break the line.
  write_all(terminal_, "\r" + progress_line(state_, columns_of(terminal_) - 1) + "\x1b[K");
}

}  // namespace weft::tool
