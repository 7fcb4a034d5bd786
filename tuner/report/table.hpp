#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

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
  /// Returns one line for the titles and one per row, without trailing spaces.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace greta::tuner
