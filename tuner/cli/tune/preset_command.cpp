#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/shard_option.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

int tune_preset(const std::string& wanted, const std::string& shard_text, TuningOptions options) {
  const Preset preset = load_preset(wanted);
  std::vector<TuningTask> tasks;
  for (const auto& [problem, where] : preset.problems)
    tasks.push_back({.problem = problem, .where = where});
  if (tasks.empty()) {
    throw CommandError(exit_usage, fmt::format("preset {}: has no problems to tune", wanted));
  }
  if (options.budget.empty()) options.budget = preset.budget;
  if (!shard_text.empty()) {
    const Shard shard = read_shard(shard_text);
    const auto all = tasks.size();
    tasks = tasks_of(shard, tasks, read_budget(options.budget));
    if (!options.quiet) {
      print(stderr, "part {} of {}: {} of {}\n", shard.index + 1, shard.count, tasks.size(),
            format_count(static_cast<std::int64_t>(all), "problem"));
    }
  }
  nlohmann::json report{{"preset", preset.name}};
  const bool all = tasks.empty() ? no_results(report) : tune_list(tasks, options, report);
  if (options.json) print_json(report);
  return all ? exit_done : exit_failed;
}

}  // namespace

void add_preset_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("preset", "Tune each problem of a preset, a JSON file");
  auto name = std::make_shared<std::string>();
  auto shard = std::make_shared<std::string>();
  auto options = std::make_shared<TuningOptions>();
  command->add_option("preset", *name, "A preset's name (smoke) or file")->required();
  command
      ->add_option("--shard", *shard,
                   "Only this part of the problems: i/n as 1/8, auto (of a Slurm array), or auto/n "
                   "(docs/cluster.md)")
      ->group("Tuning");
  add_tuning_options(*command, *options, "");  // the preset's budget unless one is given
  command->callback([&action, name, shard, options] {
    action = [name, shard, options] { return tune_preset(*name, *shard, *options); };
  });
}

}  // namespace greta::tuner::cli
