// SPDX-License-Identifier: MIT
#include "table.h"

#include <algorithm>

#include "weft/base/assert.h"

namespace weft::tool {

namespace {
constexpr std::string_view kGap = "  ";
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  unsigned char before = 0;
  for (char each : text) {
    auto byte = static_cast<unsigned char>(each);
    // U+0080 to U+009F are controls, too; in UTF-8 they are C2 and one of these.
    bool is_control = byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0);
    before = byte;
    if (!is_control && each != '\\') {
      shown += each;
    } else {
      shown.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return shown;
}

void Table::add(std::vector<std::string> row) {
  WEFT_ASSERT(row.size() == cells_.front().size(), "a cell for each title");
  for (std::string& cell : row) cell = printable(cell);
  cells_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(cells_.front().size());
  for (const auto& row : cells_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : cells_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 == row.size()) break;
      text.append(widths[i] - row[i].size(), ' ').append(kGap);
    }
    text += '\n';
  }
  return text;
}

}  // namespace weft::tool
