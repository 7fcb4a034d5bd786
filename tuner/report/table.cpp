#include "tuner/report/table.hpp"

#include <algorithm>

#include "runtime/device/text/printable.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t gap = 2;  // columns between cells

}  // namespace

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = one_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::size_t columns) const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns_) widths.push_back(text_columns(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], text_columns(row[i]));
  }
  std::size_t width = gap * (widths.size() - 1);
  for (const std::size_t one : widths) width += one;
  return text_of(columns == 0 || width <= columns ? 0 : 1, columns, widths);
}

// With `first` = 1, the first cell of a row is a line of its own, and the others are on as many
// lines as they need.
std::string Table::text_of(std::size_t first, std::size_t columns,
                           const std::vector<std::size_t>& widths) const {
  std::string text;
  const auto end_line = [&](std::string& line) {
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    line.clear();
  };
  const auto write = [&](const std::vector<std::string>& cells) {
    std::string line;
    std::size_t used = 0;  // columns of the line
    for (std::size_t i = first; i < cells.size(); ++i) {
      if (first > 0 && used > 0 && used + gap + widths[i] > columns) {
        end_line(line);
        used = 0;
      }
      const std::size_t before = i > 0 ? gap : 0;
      const std::string space(widths[i] - text_columns(cells[i]), ' ');
      line += std::string(before, ' ');
      line += columns_[i].align == Align::right ? space + cells[i] : cells[i] + space;
      used += before + widths[i];
    }
    end_line(line);
  };
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  if (first > 0) text += titles.front() + "\n";
  write(titles);
  for (const auto& row : rows_) {
    if (first > 0) text += row.front() + "\n";
    write(row);
  }
  return text;
}

}  // namespace greta::tuner
