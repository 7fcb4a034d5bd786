#pragma once

#include <string>
#include <vector>

#include "tuner/report/terminal_size.hpp"

namespace greta::tuner {

/// Text in columns, each as wide as its widest cell.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Adds a row with one cell per column. Control characters, including newlines, are escaped.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Returns one line for the titles and one per row, without trailing spaces. If that is wider
  /// than `columns`, the first cell of each row is a heading and the others are on lines below it.
  /// 0: rows of any length, for programs that read lines.
  std::string text(std::size_t columns = terminal_size(stdout).columns) const;

 private:
  std::string text_of(std::size_t first, std::size_t columns,
                      const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace greta::tuner
