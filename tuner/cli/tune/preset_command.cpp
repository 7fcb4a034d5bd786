#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/shard_option.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/program/gemm_logs.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct PresetOptions {
  std::string name;
  std::filesystem::path from, output;
  std::string shard;
  TuningOptions tuning;
};

/// Returns the problems of a log as a preset does, each once.
Preset preset_of(const GemmLog& log, const std::filesystem::path& file) {
  Preset preset;
  preset.name = file.filename().string();
  std::set<std::string> seen;
  for (const Peer& peer : log.peers) {
    if (!seen.insert(peer.problem.key()).second) continue;
    preset.problems.push_back({peer.problem, file.string()});
  }
  return preset;
}

/// Returns what a log's tool needs for each problem beside GRETA's winner, from the reports of
/// results. Of several times of a problem, the shortest.
nlohmann::json compared(const GemmLog& log, const nlohmann::json& results) {
  std::map<std::string, const Peer*> best;
  for (const Peer& peer : log.peers) {
    if (std::isnan(peer.us)) continue;
    const Peer*& known = best[peer.problem.key()];
    if (known == nullptr || peer.us < known->us) known = &peer;
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& result : results) {
    const auto found = best.find(result["problem"]["key"].get<std::string>());
    if (found == best.end() || result["winner"].is_null()) continue;
    rows.push_back({{"problem", found->first},
                    {"device", result["device"]["id"]},
                    {"tool", log.tool},
                    {"solution", found->second->solution},
                    {"tool_us", found->second->us},
                    {"greta_us", result["winner"]["median_us"]}});
  }
  return rows;
}

void print_compared(const nlohmann::json& rows) {
  for (const auto& row : rows) {
    const double theirs = row["tool_us"], ours = row["greta_us"];
    print("{}\n{}", row["problem"].get<std::string>(),
          format_row("", fmt::format("{}: {:.4g} us, {:.3f} times GRETA's {:.4g} us",
                                     row["tool"].get<std::string>(), theirs, theirs / ours, ours)));
  }
}

/// Reports the rows of a log that are not converted, each with the reason.
void report_untranslated(const GemmLog& log, const PresetOptions& options) {
  for (const auto& [row, reason] : log.untranslated) {
    print(stderr, "{}: {}: {}\n", options.from.string(), row, reason);
  }
  if (log.assumed_packed > 0 && !options.tuning.quiet) {
    print(stderr, "{}: {} without leading dimensions: operands are assumed to be packed\n",
          options.from.string(),
          format_count(static_cast<std::int64_t>(log.assumed_packed), "row"));
  }
}

int write_only(const GemmLog& log, const PresetOptions& options) {
  const Preset preset = preset_of(log, options.from);
  write_preset("--output", options.output, log);
  if (options.tuning.json) {
    nlohmann::json dropped = nlohmann::json::array();
    for (const auto& [row, reason] : log.untranslated) {
      dropped.push_back({{"row", row}, {"reason", reason}});
    }
    print_json(nlohmann::json{{"preset", options.output.string()},
                              {"tool", log.tool},
                              {"problems", preset.problems.size()},
                              {"dropped", std::move(dropped)}});
  } else if (!options.tuning.quiet) {
    print("{} of {} in {}\n",
          format_count(static_cast<std::int64_t>(preset.problems.size()), "problem"), log.tool,
          options.output.string());
  }
  return exit_done;
}

int tune_preset(const PresetOptions& given) {
  if (given.name.empty() == given.from.empty()) {
    throw CommandError(exit_usage, "preset: either a preset or --from FILE is needed");
  }
  if (!given.output.empty()) {
    if (given.from.empty()) throw CommandError(exit_usage, "--output: needs --from FILE");
    check_new_file("--output", given.output);
  }
  TuningOptions options = given.tuning;
  std::optional<GemmLog> log;
  if (!given.from.empty()) {
    log = load_gemm_log(given.from);
    report_untranslated(*log, given);
    if (!given.output.empty()) return write_only(*log, given);
  }
  const Preset preset = log ? preset_of(*log, given.from) : load_preset(given.name);
  std::vector<TuningTask> tasks;
  for (const PresetProblem& listed : preset.problems) {
    TuningTask& task = tasks.emplace_back();
    task.problem = listed.problem;
    task.where = listed.where;
  }
  if (tasks.empty()) {
    throw CommandError(exit_usage, fmt::format("preset {}: has no problems to tune", given.name));
  }
  if (options.budget.empty()) options.budget = preset.budget;
  if (!given.shard.empty()) {
    const Shard shard = read_shard(given.shard);
    const auto all = tasks.size();
    tasks = tasks_of(shard, tasks, read_budget(options.budget));
    if (!options.quiet) {
      print(stderr, "part {} of {}: {} of {}\n", shard.index + 1, shard.count, tasks.size(),
            format_count(static_cast<std::int64_t>(all), "problem"));
    }
  }
  nlohmann::json report{{"preset", preset.name}};
  const bool all = tasks.empty() ? no_results(report) : tune_list(tasks, options, report);
  if (log) {
    report["compared"] = compared(*log, report["results"]);
    if (!options.for_programs()) print_compared(report["compared"]);
  }
  if (options.json) print_json(report);
  return all ? exit_done : exit_failed;
}

}  // namespace

void add_preset_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "preset", "Tune each problem of a preset, a JSON file, or those that another tool recorded");
  auto options = std::make_shared<PresetOptions>();
  command->add_option("preset", options->name, "A preset's name (smoke) or file");
  command->add_option(
      "--from", options->from,
      "The GEMMs of this file instead: of PyTorch TunableOp "
      "(tunableop_untuned0.csv, tunableop_results0.csv), of AITER "
      "(bf16_untuned_gemm.csv), of libgreta-capture.so, or a log of hipblaslt-bench");
  command
      ->add_option("--output", options->output,
                   "With --from: only write these GEMMs as a preset, to a new file")
      ->type_name("FILE");
  command
      ->add_option("--shard", options->shard,
                   "Only this part of the problems: i/n as 1/8, auto (of a Slurm array), or auto/n "
                   "(docs/cluster.md)")
      ->group("Tuning");
  add_tuning_options(*command, options->tuning, "");  // the preset's budget unless one is given
  command->footer(
      "Examples:\n  greta-tune preset smoke\n"
      "  greta-tune preset --from tunableop_untuned0.csv --output gemms.json");
  command->callback([&action, options] { action = [options] { return tune_preset(*options); }; });
}

}  // namespace greta::tuner::cli
