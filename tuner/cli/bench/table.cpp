#include "tuner/cli/bench/table.hpp"

#include <fmt/format.h>

#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
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
  using enum Table::Align;
  Table table({{"benchmark"},
               {"median", right},
               {"p99", right},
               {"spread", right},
               {"rate", right},
               {"roofline", right},
               {"error"}});
  for (const auto& [name, row, failure] : rows) {
    if (!failure.empty()) {
      table.add({name, "", "", "", "", "", fmt::format("{}: {}", row.status, failure)});
      continue;
    }
    table.add({name, format_time(row.us), format_time(row.p99_us),
               fmt::format("{:.1f} %", row.spread_pct), rate_text(row),
               row.roofline > 0 ? format_share(row.roofline) : "", error_text(row)});
  }
  return table.text();
}

}  // namespace greta::tuner::cli
