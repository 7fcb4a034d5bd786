#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "tuner/page/columns.hpp"
#include "tuner/page/page_parts.hpp"
#include "tuner/report/baseline_report.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

constexpr double margin = 0.05;  // as greta-bench compare

/// The rows of one backend and preset of a file, without those of searches, and the time of each
/// benchmark.
struct Run {
  std::string name, preset;
  std::vector<MeasuredResult> results{};
  BaselineReport::Side side{};
  std::string utc{};
  std::map<std::string, const MeasuredResult*> rows{};
};

bool of_a_search(const MeasuredResult& result) {
  return result.subject.origin == ResultOrigin::trial ||
         result.subject.origin == ResultOrigin::stand_in;
}

/// Returns the rows of a file by backend and preset.
std::vector<Run> runs_of(const PageBaselines& file) {
  std::map<std::pair<std::string, std::string>, Run> parts;
  for (const auto& result : file.results) {
    if (of_a_search(result)) continue;
    Run& run = parts
                   .try_emplace({result.subject.backend, result.preset},
                                Run{.name = file.name, .preset = result.preset})
                   .first->second;
    if (run.utc.empty() || result.date < run.utc) run.utc = result.date;
    run.results.push_back(result);
  }
  std::vector<Run> runs;
  for (auto& [part, run] : parts) {
    run.side = side_of(file.name, run.results);
    if (!part.first.empty()) run.side.device += " (" + part.first + ")";
    for (const auto& result : run.results)
      run.rows.emplace(benchmark_name(result.subject), &result);
    runs.push_back(std::move(run));  // the rows stay where they are
  }
  return runs;
}

/// Runs of one device and preset.
using Series = std::vector<Run>;

/// Returns the preset that a run names; empty if none does, as in files of older versions.
std::string preset_of(const Series& series) {
  for (const Run& run : series)
    if (!run.preset.empty()) return run.preset;
  return "";
}

/// Returns whether the benchmarks are those of one preset: versions of one preset differ in few
/// benchmarks.
bool alike(const Run& a, const Run& b) {
  std::size_t common = 0;
  for (const auto& [name, row] : a.rows) common += b.rows.count(name);
  return 5 * common >= 4 * std::max(a.rows.size(), b.rows.size()) && common > 0;
}

/// Adds a run to the series of its device and preset. Where a preset is unknown, that of the
/// benchmarks counts.
void add_run(std::vector<Series>& all, Run run) {
  const auto find = [&](auto fits) {
    return std::find_if(all.begin(), all.end(), [&](const Series& series) {
      return series.front().side.device == run.side.device && fits(series);
    });
  };
  auto series =
      find([&](const Series& one) { return !run.preset.empty() && preset_of(one) == run.preset; });
  if (series == all.end()) {
    series = find([&](const Series& one) {
      return (run.preset.empty() || preset_of(one).empty()) &&
             std::any_of(one.begin(), one.end(),
                         [&](const Run& other) { return alike(other, run); });
    });
  }
  if (series == all.end()) series = all.emplace(all.end());
  series->push_back(std::move(run));
}

/// Returns the benchmarks of a run that another one lacks.
json missing_json(const Run& run, const Run& other) {
  json names = json::array();
  for (const auto& [name, row] : run.rows)
    if (other.rows.count(name) == 0) names.push_back(name);
  return names;
}

json changes_json(const std::vector<Run>& runs, std::size_t from, std::size_t to) {
  const auto compared = compare_baselines(runs[from].results, runs[to].results, margin);
  json changes = json::array();
  for (const auto& change : compared.changes) {
    changes.push_back({{"name", benchmark_name(change.fresh.subject)},
                       {"finding", finding_text(change)},
                       {"processor", change.by_processor},
                       {"ratio", change.broke ? json(nullptr) : known(change.change.estimate)},
                       {"low", change.broke ? json(nullptr) : known(change.change.low)},
                       {"high", change.broke ? json(nullptr) : known(change.change.high)}});
  }
  return {{"from", from},
          {"to", to},
          {"confidence", compared.confidence},
          {"margin", margin},
          {"regressions", compared.regressions()},
          {"only_from", missing_json(runs[from], runs[to])},
          {"only_to", missing_json(runs[to], runs[from])},
          {"changes", changes}};
}

json rows_json(const std::vector<Run>& runs) {
  std::set<std::string> names;
  for (const Run& run : runs)
    for (const auto& [name, row] : run.rows) names.insert(name);
  json rows = json::array();
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (const auto& name : names) {
    std::vector<double> us, low, high;
    json status = json::array();
    for (const Run& run : runs) {
      const auto at = run.rows.find(name);
      const MeasuredResult* row = at == run.rows.end() ? nullptr : at->second;
      const bool timed = row != nullptr && row->us.median > 0;
      us.push_back(timed ? row->us.median : none);
      low.push_back(timed ? row->us.low : none);
      high.push_back(timed ? row->us.high : none);
      status.push_back(row == nullptr ? ""
                       : row->failure ? std::string(to_string(row->failure->status))
                                      : "ok");
    }
    rows.push_back({{"name", name},
                    {"status", status},
                    {"us", column(std::span<const double>(us))},
                    {"low_us", column(std::span<const double>(low))},
                    {"high_us", column(std::span<const double>(high))}});
  }
  return rows;
}

}  // namespace

json baseline_data(const std::vector<PageBaselines>& baselines) {
  std::vector<Series> groups;
  for (const auto& file : baselines)
    for (Run& run : runs_of(file)) add_run(groups, std::move(run));
  json list = json::array();
  for (auto& runs : groups) {
    std::stable_sort(runs.begin(), runs.end(),
                     [](const Run& a, const Run& b) { return a.utc < b.utc; });
    json files = json::array(), comparisons = json::array();
    for (const Run& run : runs) {
      files.push_back({{"name", run.name},
                       {"utc", run.utc},
                       {"driver", run.side.driver},
                       {"compiler", run.side.compiler},
                       {"version", run.side.greta_version},
                       {"revision", run.side.greta_revision}});
    }
    for (std::size_t i = 1; i < runs.size(); ++i)
      comparisons.push_back(changes_json(runs, i - 1, i));
    if (runs.size() > 2) comparisons.push_back(changes_json(runs, 0, runs.size() - 1));
    list.push_back({{"device", runs.front().side.device},
                    {"preset", preset_of(runs)},
                    {"files", files},
                    {"rows", rows_json(runs)},
                    {"comparisons", comparisons}});
  }
  return list;
}

}  // namespace greta::tuner
