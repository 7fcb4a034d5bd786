#include "tuner/cli/tune/task_list.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner::cli {
namespace {

std::string summary_line(const SessionResult& result) {
  const std::string what = fmt::format("{} {}", result.device.id(), result.problem.key());
  if (!result.winner) return fmt::format("{:<58} no winner\n", what);
  const Winner& winner = *result.winner;
  return fmt::format("{:<58} {:>9} {:>12} {:>5} of roofline, {:.2f}× the default\n", what,
                     format_time(winner.measurement.median_us),
                     format_rate(result.work, winner.measurement.median_us),
                     format_share(winner.roofline), winner.speedup) +
         format_row("", winner.config.text());
}

}  // namespace

bool tune_list(const std::vector<TuningTask>& tasks, const TuningOptions& options,
               nlohmann::json& report) {
  auto& results = report["results"] = nlohmann::json::array();
  auto& comparisons = report["comparisons"] = nlohmann::json::array();
  return tune_tasks(tasks, options, [&](const TuningTask&, const TaskResult& result) {
    for (const auto& session : result.sessions) {
      results.push_back(report_json(session, options.db.string()));
      if (!options.json) print_text(summary_line(session));
    }
    if (!result.contest) return;
    comparisons.push_back(contest_json(result.entrants(), *result.contest));
    if (!options.json) print_text(contest_text(result.entrants(), *result.contest));
  });
}

void report_left_out(const Distribution& distribution, const std::string& budget) {
  if (distribution.left_out.empty()) return;
  print(stderr, "{} with {:.1f} % of the time skipped: --budget {} is too short for them\n",
        format_count(static_cast<std::int64_t>(distribution.left_out.size()), "problem"),
        100 * distribution.left_out_share, budget);
}

}  // namespace greta::tuner::cli
