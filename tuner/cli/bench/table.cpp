#include "tuner/cli/bench/table.hpp"

#include <fmt/format.h>

#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

std::string failure_text(const Failure& failure) {
  return fmt::format("{}: {}", to_string(failure.status), failure.message);
}

std::string error_text(const Verdict& verdict) {
  return verdict.bound > 0 ? fmt::format("{} of bound", format_share(verdict.error / verdict.bound))
                           : "";
}

}  // namespace

std::string bench_table(const std::vector<NamedResult>& results) {
  using enum Table::Align;
  Table table({{"benchmark"},
               {"median", right},
               {"p99", right},
               {"spread", right},
               {"rate", right},
               {"roofline", right},
               {"error"}});
  for (const auto& [name, result] : results) {
    if (result.failure) {
      table.add({name, "", "", "", "", "", failure_text(*result.failure)});
      continue;
    }
    const auto& us = result.us;
    const bool has_rate = result.work.bytes > 0 && us.median > 0;
    table.add({name, format_time(us.median, us.low, us.high), format_time(us.p99),
               fmt::format("{:.1f} %", us.spread_percent),
               has_rate ? format_rate(result.work, us.median) : "",
               result.roofline > 0 ? format_share(result.roofline) : "",
               error_text(result.verdict)});
  }
  return table.text();
}

std::string verify_table(const std::vector<NamedResult>& results) {
  Table table({{"benchmark"}, {"right", Table::Align::right}, {"error"}});
  for (const auto& [name, result] : results) {
    table.add({name, std::to_string(result.count),
               result.failure ? failure_text(*result.failure) : error_text(result.verdict)});
  }
  return table.text();
}

}  // namespace greta::tuner::cli
