#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "tuner/bench/compare.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

struct CompareOptions {
  std::filesystem::path base, fresh;
  std::string threshold = "5";
  bool any_device = false;
};

double read_threshold(const std::string& text) {
  std::size_t end = 0;
  double percent = -1;
  try {
    percent = std::stod(text, &end);
  } catch (const std::exception&) {
    end = std::string::npos;
  }
  const bool unit = end != std::string::npos && text.substr(end) == "%";
  if (end == std::string::npos || (end != text.size() && !unit) || !(percent > 0) ||
      percent > 1000) {
    throw CommandError(
        exit_usage, fmt::format("--threshold {}: must be a percentage, such as 5 or 2.5%", text));
  }
  return percent / 100;
}

std::vector<MeasuredResult> read_baseline(const std::filesystem::path& file) {
  auto rows = read_csv(file);
  if (!rows) throw CommandError(exit_usage, rows.failure().message);
  if (rows->empty()) throw CommandError(exit_usage, file.string() + ": has no rows");
  return *std::move(rows);
}

// Returns the distinct values of a member as a list.
std::string values_of(const std::vector<MeasuredResult>& results, std::string Subject::*member) {
  std::set<std::string> values;
  for (const auto& result : results) values.insert(result.subject.*member);
  return fmt::format("{}", fmt::join(values, ", "));
}

void check_devices(const std::vector<MeasuredResult>& base,
                   const std::vector<MeasuredResult>& fresh, bool any_device) {
  const auto before = values_of(base, &Subject::device), after = values_of(fresh, &Subject::device);
  if (before == after) return;
  if (!any_device) {
    throw CommandError(
        exit_usage, fmt::format("different devices: {} and {}; --any-device compares them anyway",
                                before, after));
  }
  print("different devices: {} and {}\n", before, after);
}

void print_circumstances(const std::vector<MeasuredResult>& base,
                         const std::vector<MeasuredResult>& fresh) {
  for (const auto& [what, member] : {std::pair{"driver", &Subject::driver},
                                     {"compiler", &Subject::compiler},
                                     {"GRETA", &Subject::greta_version}}) {
    const auto before = values_of(base, member), after = values_of(fresh, member);
    if (before != after) print("{} changed: {} → {}\n", what, before, after);
  }
}

std::string percent(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "?";
}

std::string interval_text(const ResultChange& row) {
  if (row.broke) return std::string(to_string(row.fresh.failure->status));
  if (row.change.low <= 0) return "too few samples";
  return fmt::format("{} to {}", percent(row.change.low), percent(row.change.high));
}

void print_rows(const BaselineComparison& comparison) {
  using enum Table::Align;
  Table table({{"finding"},
               {"before", right},
               {"now", right},
               {"change", right},
               {"interval"},
               {"benchmark"}});
  for (const auto& row : comparison.changes) {
    const bool other = row.base.subject.config != row.fresh.subject.config;
    table.add({row.broke ? "fails" : std::string(to_string(row.finding)),
               format_time(row.base.us.median), format_time(row.fresh.us.median),
               row.broke ? "" : percent(row.change.estimate), interval_text(row),
               subject_text(row.fresh.subject) + (row.by_processor ? " (processor time)" : "") +
                   (other ? " (another configuration)" : "")});
  }
  for (const auto& row : comparison.only_base) {
    table.add({"only before", format_time(row.us.median), "", "", "", subject_text(row.subject)});
  }
  for (const auto& row : comparison.only_fresh) {
    table.add({"only now", "", format_time(row.us.median), "", "", subject_text(row.subject)});
  }
  print_text(table.text());
}

void print_summary(const BaselineComparison& comparison, double margin) {
  const auto count = [&](Finding finding) {
    return std::count_if(
        comparison.changes.begin(), comparison.changes.end(),
        [&](const ResultChange& row) { return !row.broke && row.finding == finding; });
  };
  const auto broke = std::count_if(comparison.changes.begin(), comparison.changes.end(),
                                   [](const ResultChange& row) { return row.broke; });
  print(
      "\n{}: {} slower by more than {:.3g} %, {} failing, {} faster, {} the same, {} "
      "inconclusive\n",
      format_count(comparison.changes.size(), "row"), count(Finding::slower), 100 * margin, broke,
      count(Finding::faster), count(Finding::same), count(Finding::unsure));
  const bool blind = std::any_of(comparison.changes.begin(), comparison.changes.end(),
                                 [](const ResultChange& row) { return row.change.low <= 0; });
  if (blind)
    print("some rows have too few blocks of samples for a conclusion; --repeat takes more\n");
}

int compare(const CompareOptions& options) {
  const double margin = read_threshold(options.threshold);
  const auto base = read_baseline(options.base), fresh = read_baseline(options.fresh);
  check_devices(base, fresh, options.any_device);
  const auto comparison = compare_baselines(base, fresh, margin);
  if (comparison.changes.empty()) {
    throw CommandError(exit_usage, fmt::format("{} and {} have no row in common",
                                               options.base.string(), options.fresh.string()));
  }
  print_circumstances(base, fresh);
  print_rows(comparison);
  print_summary(comparison, margin);
  return comparison.regressions() > 0 ? exit_regression : exit_done;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("compare", "Compare two CSV baselines; exits with 4 on a regression");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("base", options->base, "The older baseline")->required();
  command->add_option("new", options->fresh, "The newer one")->required();
  command->add_option("--threshold", options->threshold, "Smallest change that counts, in percent")
      ->capture_default_str();
  command->add_flag("--any-device", options->any_device, "Compare different devices too");
  command->footer(
      "Examples:\n  greta-bench compare before.csv after.csv\n"
      "  greta-bench compare before.csv after.csv --threshold 2");
  command->callback([&action, options] { action = [options] { return compare(*options); }; });
}

}  // namespace greta::tuner::cli
