#include "tuner/cli/bench/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "tuner/report/format.hpp"
#include "tuner/report/plot.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

std::string failure_text(const Failure& failure) {
  return fmt::format("{}: {}", to_string(failure.status), failure.message);
}

/// Returns whether a result has no times to show. One that was interrupted has those of the blocks
/// that were taken before.
bool is_failure(const MeasuredResult& result) {
  return result.failure && (result.failure->status != Status::unavailable || result.us.median <= 0);
}

std::string error_text(const Verdict& verdict) {
  return verdict.bound > 0 ? fmt::format("{} of bound", format_share(verdict.error / verdict.bound))
                           : "";
}

/// Returns the error, and whether the result is incomplete.
std::string remark_text(const MeasuredResult& result) {
  const std::string error = error_text(result.verdict);
  if (!result.failure) return error;
  return fmt::format("{}{} after {} blocks", error.empty() ? "" : error + ", ",
                     result.failure->message, result.samples.blocks_us.size());
}

// Without an interval if there are too few blocks for one.
std::string ratio_text(const Samples& one, const Samples& other) {
  const Interval ratio = paired_ratio(one, other);
  if (!std::isfinite(ratio.high) || ratio.low <= 0) return fmt::format("{:.3g}", ratio.estimate);
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", ratio.estimate, ratio.low, ratio.high);
}

// The columns of counters; none unless a result was counted.
class CounterColumns {
 public:
  explicit CounterColumns(const std::vector<NamedResult>& results)
      : shown_(std::any_of(results.begin(), results.end(), [](const NamedResult& one) {
          return one.result.counters || !one.result.no_counters.empty();
        })) {}

  void add_titles(std::vector<Table::Column>& columns) const {
    if (!shown_) return;
    for (const char* title : {"memory", "L2", "shared", "conflicts", "matrix", "FMA", "occupancy"})
      columns.push_back({title, Table::Align::right});
    columns.push_back({"limit"});
  }
  void add_cells(const MeasuredResult& result, std::vector<std::string>& cells) const {
    if (!shown_) return;
    const auto& counters = result.counters;
    const auto text = [&](std::string_view name, std::string (*format)(double)) {
      const auto value = counters ? counters->figure(name) : std::nullopt;
      cells.push_back(value ? format(*value) : "");
    };
    const auto read = counters ? counters->figure("memory_read_bytes") : std::nullopt;
    const auto written = counters ? counters->figure("memory_write_bytes") : std::nullopt;
    cells.push_back(read && written ? format_bytes(*read + *written) : "");
    text("l2_bytes", format_bytes);
    text("shared_bytes", format_bytes);
    text("shared_conflict_share", format_share);
    text("matrix_share", format_share);
    text("fma_share", format_share);
    text("occupancy_share", format_share);
    cells.push_back(result.counters || result.no_counters.empty()
                        ? result.limiter
                        : "no counters: " + result.no_counters);
  }

 private:
  bool shown_;
};

}  // namespace

std::string bench_table(const std::vector<NamedResult>& results) {
  using enum Table::Align;
  const CounterColumns counters(results);
  std::vector<Table::Column> columns{{"benchmark"},     {"median", right}, {"p99", right},
                                     {"spread", right}, {"rate", right},   {"roofline", right},
                                     {"error"}};
  counters.add_titles(columns);
  Table table(columns);
  for (const auto& [name, result] : results) {
    if (is_failure(result)) {
      std::vector<std::string> cells{name, "", "", "", "", "", failure_text(*result.failure)};
      cells.resize(columns.size());
      table.add(std::move(cells));
      continue;
    }
    const auto& us = result.us;
    const bool has_rate = result.work.bytes > 0 && us.median > 0;
    std::vector<std::string> cells{name,
                                   format_time(us.median, us.low, us.high),
                                   format_time(us.p99),
                                   fmt::format("{:.1f} %", us.spread_percent),
                                   has_rate ? format_rate(result.work, us.median) : "",
                                   result.roofline > 0 ? format_share(result.roofline) : "",
                                   remark_text(result)};
    counters.add_cells(result, cells);
    table.add(std::move(cells));
  }
  return table.text();
}

std::string ways_table(const std::vector<NamedResult>& results) {
  using enum Table::Align;
  std::vector<const MeasuredResult*> ways;
  for (const auto& named : results) ways.push_back(&named.result);
  const auto later = [](const MeasuredResult* way) {
    return is_failure(*way) || way->us.median <= 0;
  };
  std::stable_sort(ways.begin(), ways.end(), [&](const auto* a, const auto* b) {
    if (later(a) != later(b)) return later(b);
    return a->us.median < b->us.median;
  });
  const CounterColumns counters(results);
  std::vector<Table::Column> columns{
      {"configuration"},    {"of"},          {"device"},          {"median", right},
      {"× fastest", right}, {"rate", right}, {"roofline", right}, {"error"}};
  counters.add_titles(columns);
  Table table(columns);
  for (const MeasuredResult* way : ways) {
    const Subject& subject = way->subject;
    // Kernels of the user's own stand beside those of the operation.
    const MeasuredResult& first = results.front().result;
    const bool is_own = subject.problem.op != first.subject.problem.op;
    std::string config = is_own ? subject.problem.op + ": " : "";
    if (subject.config) config += subject.config->shown();
    const std::string of(to_string(subject.origin)), device = subject.backend;
    if (is_failure(*way)) {
      std::vector<std::string> cells{config, of, device, "",
                                     "",     "", "",     failure_text(*way->failure)};
      cells.resize(columns.size());
      table.add(std::move(cells));
      continue;
    }
    const auto& us = way->us;
    const Work& work = is_own ? first.work : way->work;  // which computes the same
    const double roofline = is_own && subject.backend == first.subject.backend && us.median > 0
                                ? first.roofline * first.us.median / us.median
                                : way->roofline;
    std::vector<std::string> cells{
        config,
        of,
        device,
        format_time(us.median, us.low, us.high),
        way == ways.front() ? "1" : ratio_text(way->samples, ways.front()->samples),
        work.bytes > 0 && us.median > 0 ? format_rate(work, us.median) : "",
        roofline > 0 ? format_share(roofline) : "",
        remark_text(*way)};
    counters.add_cells(*way, cells);
    table.add(std::move(cells));
  }
  return table.text();
}

std::string parts_table(const std::vector<PartsResult>& rows) {
  using enum Table::Align;
  if (rows.empty()) return {};
  Table table({{"operation"},
               {"launches", right},
               {"configuration"},
               {"of"},
               {"device"},
               {"median", right},
               {"× fused", right},
               {"roofline", right},
               {"error"}});
  const auto add = [&](const MeasuredResult& result, int count, const std::string& ratio,
                       const char* indent) {
    const Subject& subject = result.subject;
    const bool good = !is_failure(result) && result.us.median > 0;
    table.add({indent + subject.problem.op, count == 0 ? "" : std::to_string(count),
               subject.config ? subject.config->shown() : "",
               std::string(to_string(subject.origin)), subject.backend,
               good ? format_time(result.us.median, result.us.low, result.us.high) : "", ratio,
               good && result.roofline > 0 ? format_share(result.roofline) : "",
               good             ? remark_text(result)
               : result.failure ? failure_text(*result.failure)
                                : ""});
  };
  for (const PartsResult& row : rows) {
    add(*row.fused, 1, row.parts_us > 0 ? "1" : "", "");
    int launches = 0;
    for (const auto& [result, count] : row.parts) {
      const double share = row.parts_us > 0 ? count * result->us.median / row.fused->us.median : 0;
      add(*result, count, share > 0 ? fmt::format("{:.3g}", share) : "", "  ");
      launches += count;
    }
    if (row.parts_us <= 0) continue;
    const Interval& ratio = row.ratio;
    table.add({"  together", std::to_string(launches), "", "", row.fused->subject.backend,
               format_time(row.parts_us),
               std::isfinite(ratio.high)
                   ? fmt::format("{:.3g} ({:.3g} to {:.3g})", ratio.estimate, ratio.low, ratio.high)
                   : fmt::format("{:.3g}", ratio.estimate),
               "", ""});
  }
  return table.text();
}

std::string ladder_table(const std::vector<NamedResult>& results) {
  struct Step {
    std::optional<double> gbps, ns;
  };
  std::map<std::pair<std::string, double>, Step> steps;  // by device and working set
  double most_gbps = 0, most_ns = 0;
  for (const auto& [name, result] : results) {
    const Subject& subject = result.subject;
    const bool bandwidth = subject.problem.op == "cache_bandwidth";
    if ((!bandwidth && subject.problem.op != "cache_latency") || result.us.median <= 0) continue;
    Step& step = steps[{subject.backend + " " + subject.device,
                        static_cast<double>(subject.problem.dim("bytes"))}];
    if (bandwidth) {
      step.gbps = result.work.bytes / result.us.median / 1e3;
      most_gbps = std::max(most_gbps, *step.gbps);
    } else {
      step.ns = 1e3 * result.us.median;
      most_ns = std::max(most_ns, *step.ns);
    }
  }
  if (steps.empty()) return {};
  using enum Table::Align;
  constexpr std::size_t bar = 20;
  Table table(
      {{"working set", right}, {"bandwidth", right}, {""}, {"latency", right}, {""}, {"device"}});
  for (const auto& [key, step] : steps) {
    table.add({format_bytes(key.second), step.gbps ? fmt::format("{:.3g} GB/s", *step.gbps) : "",
               step.gbps ? bar_text(*step.gbps / most_gbps, bar) : "",
               step.ns ? fmt::format("{:.3g} ns", *step.ns) : "",
               step.ns ? bar_text(*step.ns / most_ns, bar) : "", key.first});
  }
  return table.text();
}

std::string gate_table(const std::vector<GateResult>& results) {
  Table table({{"expected"}, {"finding"}, {"measured"}, {"benchmark"}});
  for (const GateResult& result : results) {
    table.add({result.gate.text, std::string(to_string(result.outcome)), measured_text(result),
               result.benchmark});
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
