#include "tuner/report/table.hpp"

#include <algorithm>

#include "runtime/device/text/printable.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = one_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  std::vector<std::size_t> widths(columns_.size(), 0);
  const auto widen = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], text_columns(cells[i]));
    }
  };
  widen(titles);
  for (const auto& row : rows_) widen(row);

  std::string text;
  const auto write = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - text_columns(cells[i]), ' ');
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::right ? space + cells[i] : cells[i] + space;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  write(titles);
  for (const auto& row : rows_) write(row);
  return text;
}

}  // namespace greta::tuner
