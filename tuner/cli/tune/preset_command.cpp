#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

int tune_preset(const std::string& wanted, TuningOptions options) {
  const Preset preset = load_preset(wanted);
  std::vector<TuningTask> tasks;
  for (const auto& [problem, where] : preset.problems)
    tasks.push_back({.problem = problem, .where = where});
  if (tasks.empty()) {
    throw CommandError(exit_usage, fmt::format("preset {}: has no problems to tune", wanted));
  }
  if (options.budget.empty()) options.budget = preset.budget;
  nlohmann::json report{{"preset", preset.name}};
  const bool all = tune_list(tasks, options, report);
  if (options.json) print_json(report);
  return all ? exit_done : exit_failed;
}

}  // namespace

void add_preset_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("preset", "Tune each problem of a preset, a JSON file");
  auto name = std::make_shared<std::string>();
  auto options = std::make_shared<TuningOptions>();
  command->add_option("preset", *name, "A preset's name (smoke) or file")->required();
  add_tuning_options(*command, *options, "");  // the preset's budget unless one is given
  command->callback([&action, name, options] {
    action = [name, options] { return tune_preset(*name, *options); };
  });
}

}  // namespace greta::tuner::cli
