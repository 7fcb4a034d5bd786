#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "runtime/device/system/utc.hpp"
#include "tuner/bench/acceptance.hpp"
#include "tuner/bench/compare.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/report/baseline_report.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct CompareOptions {
  std::filesystem::path base, fresh;
  std::filesystem::path accept;  // empty: none
  std::string threshold = "5";
  std::string format = "text";
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

void check_devices(const BaselineReport& report, bool any_device) {
  if (report.base.device == report.fresh.device || any_device) return;
  throw CommandError(exit_usage,
                     fmt::format("different devices: {} and {}; --any-device compares them anyway",
                                 report.base.device, report.fresh.device));
}

// The forms of a report, in the order of --help.
struct Form {
  const char* name;
  void (*write)(const BaselineReport&);
};
constexpr std::array<Form, 5> forms{{
    {"text", [](const BaselineReport& report) { print_text(baseline_text(report)); }},
    {"markdown", [](const BaselineReport& report) { print_text(baseline_markdown(report)); }},
    {"json", [](const BaselineReport& report) { print_json(baseline_json(report)); }},
    {"bmf", [](const BaselineReport& report) { print_json(baseline_bmf(report)); }},
    {"github", [](const BaselineReport& report) { print_json(baseline_github(report)); }},
}};

int compare(const CompareOptions& options) {
  const double margin = read_threshold(options.threshold);
  const auto base = read_baseline(options.base), fresh = read_baseline(options.fresh);
  BaselineReport report{.comparison = {},
                        .base = side_of(options.base.string(), base),
                        .fresh = side_of(options.fresh.string(), fresh),
                        .margin = margin};
  check_devices(report, options.any_device);
  report.comparison = compare_baselines(base, fresh, margin);
  if (report.comparison.changes.empty()) {
    throw CommandError(exit_usage, fmt::format("{} and {} have no row in common",
                                               options.base.string(), options.fresh.string()));
  }
  if (!options.accept.empty()) {
    const auto acceptances = read_acceptances(options.accept);
    if (!acceptances) throw CommandError(exit_usage, "--accept: " + acceptances.failure().message);
    report.acceptances = accept(report.comparison, *acceptances, utc_now().substr(0, 10));
  }
  const auto form = std::find_if(forms.begin(), forms.end(),
                                 [&](const Form& one) { return one.name == options.format; });
  form->write(report);
  return report.comparison.regressions() > 0 ? exit_regression : exit_done;
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
  command
      ->add_option(
          "--accept", options->accept,
          "Accept the slowdowns that this file lists with a limit, a reason and a last day "
          "(docs/benchmarks.md)")
      ->type_name("FILE");
  command->add_flag("--any-device", options->any_device, "Compare different devices too");
  std::vector<std::string> names;
  for (const Form& form : forms) names.emplace_back(form.name);
  add_choice(*command, "--format", options->format,
             "Form of the report: text, markdown (for the summary of a CI job), json "
             "(docs/json.md), bmf (Bencher's metric format) or github (github-action-benchmark's "
             "customSmallerIsBetter)",
             names);
  command->footer(
      "Examples:\n  greta-bench compare before.csv after.csv\n"
      "  greta-bench compare before.csv after.csv --threshold 2\n"
      "  greta-bench compare before.csv after.csv --accept accepted.json\n"
      "  greta-bench compare before.csv after.csv --format markdown >> $GITHUB_STEP_SUMMARY");
  command->callback([&action, options] { action = [options] { return compare(*options); }; });
}

}  // namespace greta::tuner::cli
