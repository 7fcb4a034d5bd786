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
  /// As many cells as columns. Their control characters, newlines included, are shown as escapes.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// A line for the titles and one for each row; no line ends in a space.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace greta::tuner
