#include "tuner/cli/bench/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/report/format.hpp"

namespace greta {
namespace {

std::string rate_text(const CsvRow& row) {
  const Work work{row.tflops * row.us * 1e6, row.gbps * row.us * 1e3};
  return work.bytes > 0 ? format_rate(work, row.us) : "";
}

std::string error_text(const CsvRow& row) {
  return row.bound > 0 ? fmt::format("{} of bound", format_share(row.error / row.bound)) : "";
}

}  // namespace

std::string bench_table(const std::vector<TableRow>& rows) {
  std::size_t width = 9;
  for (const auto& row : rows) width = std::max(width, row.name.size());
  std::string text = fmt::format("{:<{}} {:>9} {:>9} {:>7} {:>12} {:>8}  {}\n", "benchmark", width,
                                 "median", "p99", "spread", "rate", "roofline", "error");
  for (const auto& [name, row, failure] : rows) {
    if (!failure.empty()) {
      text += fmt::format("{:<{}} {}: {}\n", name, width, row.status, failure);
      continue;
    }
    const std::string share = row.roofline > 0 ? format_share(row.roofline) : "";
    text += fmt::format("{:<{}} {:>9} {:>9} {:>5.1f} % {:>12} {:>8}  {}\n", name, width,
                        format_time(row.us), format_time(row.p99_us), row.spread_pct,
                        rate_text(row), share, error_text(row));
  }
  return text;
}

}  // namespace greta
