#pragma once

#include <string>
#include <vector>

#include "tuner/report/csv.hpp"

namespace greta::tuner::cli {

/// A row of the table, and what it is called there.
struct TableRow {
  std::string name;
  CsvRow row;
  std::string failure;  ///< empty: none
};

/// Figures of benchmarks for people, a line each.
std::string bench_table(const std::vector<TableRow>& rows);

}  // namespace greta::tuner::cli
