#include "tuner/cli/tune/task_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner::cli {
namespace {

constexpr double least_s = 3;  ///< minimum budget for which tuning a problem is useful

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

std::vector<TuningTask> tasks_by_time(std::vector<WeightedProblem> problems,
                                      const std::string& budget) {
  std::stable_sort(problems.begin(), problems.end(),
                   [](const auto& a, const auto& b) { return a.us > b.us; });
  const Budget whole = read_budget(budget);
  const bool timed = whole.kind() == Budget::Kind::seconds;
  std::size_t served = problems.size();
  const auto total_of = [&problems](std::size_t count) {
    double us = 0;
    for (std::size_t i = 0; i < count; ++i) us += problems[i].us;
    return us;
  };
  // The last one has the smallest budget.
  while (timed && served > 1 &&
         whole.amount() * problems[served - 1].us < least_s * total_of(served)) {
    --served;
  }
  const double total = total_of(served);
  std::vector<TuningTask> tasks;
  for (std::size_t i = 0; i < served; ++i) {
    tasks.push_back({.problem = problems[i].problem});
    if (timed && total > 0) tasks.back().share = problems[i].us / total;
  }
  if (served < problems.size()) {
    const double left = 100 * (1 - total / total_of(problems.size()));
    print(stderr, "{} with {:.1f} % of the time left out: --budget {} is too short for them\n",
          format_count(static_cast<std::int64_t>(problems.size() - served), "problem"), left,
          budget);
  }
  return tasks;
}

}  // namespace greta::tuner::cli
