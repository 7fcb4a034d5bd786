#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/presets.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tuning.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/report.hpp"

namespace greta {
namespace {

using nlohmann::json;

Preset read_tasks(const std::string& wanted, std::vector<TuningTask>& tasks) {
  auto preset = load_preset(wanted);
  for (const auto& [problem, where] : preset.problems) tasks.push_back({problem, {}, where});
  if (tasks.empty()) {
    throw CommandError(exit_usage, fmt::format("preset {}: has no problems to tune", wanted));
  }
  return preset;
}

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

int tune_preset(const std::string& wanted, TuningOptions options) {
  std::vector<TuningTask> tasks;
  const Preset preset = read_tasks(wanted, tasks);
  if (options.budget.empty()) options.budget = preset.budget;
  Tuning tuning(options, tasks);
  json results = json::array();
  json comparisons = json::array();
  bool all = true;
  for (const auto& task : tasks) {
    if (tuning.interrupted()) break;
    static_cast<void>(std::fputs(("\n" + task.problem.key() + "\n").c_str(), stderr));
    const TaskResult result = tuning.run(task);
    all = all && result.won();
    tuning.write_csv(result);
    for (const auto& session : result.sessions) {
      results.push_back(report_json(session, tuning.database().string()));
      if (!options.json) fmt::print("{}", summary_line(session));
    }
    if (result.contest) {
      comparisons.push_back(contest_json(result.entrants(), *result.contest));
      if (!options.json) fmt::print("{}", contest_text(result.entrants(), *result.contest));
    }
    std::fflush(stdout);
  }
  if (options.json) {
    const json object{{"preset", preset.name}, {"results", results}, {"comparisons", comparisons}};
    fmt::print("{}\n", object.dump(2));
  }
  return all && !tuning.interrupted() ? exit_done : exit_failed;
}

}  // namespace

void add_preset_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("preset", "Tune each problem of a preset, a JSON file");
  auto name = std::make_shared<std::string>();
  auto options = std::make_shared<TuningOptions>();
  command->add_option("preset", *name, "A preset's name (smoke) or file")->required();
  add_tuning_options(*command, *options, "");  // the preset's own budget unless one is given
  command->callback([&action, name, options] {
    action = [name, options] { return tune_preset(*name, *options); };
  });
}

}  // namespace greta
