#include "tuner/cli/tune/task_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/cli/program/next.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner::cli {
namespace {

std::string summary_line(const SessionResult& result) {
  const std::string text = result.problem.key() + "\n";
  if (!result.winner) return text + format_row(result.device.id(), "no winner");
  const Winner& winner = *result.winner;
  const double us = winner.measurement.median_us;
  const std::string figures = fmt::format(
      "{}, {}{}, {}", format_time(winner.measurement), format_rate(result.work, us),
      winner.roofline > 0 ? ", " + format_share(winner.roofline) + " of the roofline" : "",
      speedup_text(winner));
  return text + format_row(result.device.id(), figures) + format_row("", winner.config.shown());
}

}  // namespace

bool no_results(nlohmann::json& report) {
  report["results"] = report["comparisons"] = nlohmann::json::array();
  return true;
}

bool tune_list(const std::vector<TuningTask>& tasks, const TuningOptions& options,
               nlohmann::json& report) {
  no_results(report);
  auto& results = report["results"];
  auto& comparisons = report["comparisons"];
  return tune_tasks(tasks, options, [&](const TuningTask&, const TaskResult& result) {
    for (const auto& session : result.sessions) {
      results.push_back(report_json(session, options.db.string()));
      if (!options.for_programs()) print_text(summary_line(session));
    }
    if (!result.contest) return;
    comparisons.push_back(contest_json(result.entrants(), *result.contest));
    if (!options.for_programs()) print_text(contest_text(result.entrants(), *result.contest));
  });
}

void report_left_out(const Distribution& distribution, const TuningOptions& options) {
  if (distribution.left_out.empty()) return;
  print(stderr, "{} with {:.1f} % of the time skipped: --budget {} is too short for them\n",
        format_count(static_cast<std::int64_t>(distribution.left_out.size()), "problem"),
        100 * distribution.left_out_share, options.budget);
  constexpr std::size_t most_named = 3;
  for (std::size_t i = 0; i < std::min(most_named, distribution.left_out.size()); ++i)
    print(stderr, "  {}\n",
          tune_command(distribution.left_out[i], options.device, !options.warm, options.db));
}

}  // namespace greta::tuner::cli
