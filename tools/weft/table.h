// SPDX-License-Identifier: MIT
#pragma once
// weft::tool::Table: rows of text in columns, each as wide as its widest cell. What cannot be printed is shown as \xNN: names
// and owners are others' text, and a terminal obeys what it is sent.
//
// Threads        one.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::tool {

[[nodiscard]] std::string printable(std::string_view text);

class Table {
 public:
  explicit Table(std::vector<std::string> titles) { cells_.push_back(std::move(titles)); }

  // Requires: as many cells as there are titles.
  void add(std::vector<std::string> row);
  [[nodiscard]] std::size_t rows() const noexcept { return cells_.size() - 1; }
  // The titles, then the rows; a newline behind each.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace weft::tool
