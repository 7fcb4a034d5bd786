#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/catalog.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tuning.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/report.hpp"

namespace greta {
namespace {

using nlohmann::json;

struct Preset {
  std::string name;
  std::string budget;
  std::vector<TuningTask> tasks;
};

// A file, or the name of an installed preset, or one of a source tree that is the current folder.
std::filesystem::path find_preset(const std::string& wanted) {
  if (std::filesystem::is_regular_file(wanted)) return wanted;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto installed = program.parent_path().parent_path() / "share/greta/presets";
  for (const auto& folder : {installed, std::filesystem::path("presets")}) {
    const auto file = folder / (wanted + ".json");
    if (std::filesystem::is_regular_file(file)) return file;
  }
  throw CommandError(exit_usage, fmt::format("preset {}: no such file, and no preset of that name "
                                             "in {} or presets/",
                                             wanted, installed.string()));
}

// Everything but "op" and the types is a dimension or an attribute, as on the command line.
Problem read_problem(const json& entry, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    throw CommandError(exit_usage, fmt::format("{}: {}", where, why));
  };
  if (!entry.is_object()) refuse("is not an object");
  const auto op = entry.value("op", json());
  const auto* kernel_template = op.is_string() ? find_template(op.get<std::string>()) : nullptr;
  if (kernel_template == nullptr) refuse("\"op\" names no operation");
  ProblemRequest request;
  for (const auto& [name, value] : entry.items()) {
    if (name == "op") continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (name == "dtype") {
      request.dtype = text;
    } else if (name == "out_dtype") {
      request.out_dtype = text;
    } else {
      request.values.emplace_back(name, text);
    }
  }
  auto problem = make_problem(*kernel_template, request);
  if (!problem) refuse(problem.failure().message);
  return *std::move(problem);
}

Preset read_preset(const std::filesystem::path& file) {
  std::ifstream in(file);
  const json object = json::parse(in, nullptr, false);
  const auto refuse = [&](const std::string& why) {
    throw CommandError(exit_usage, fmt::format("{}: {}", file.string(), why));
  };
  if (object.is_discarded() || !object.is_object()) refuse("is not a JSON object");
  for (const auto& [name, value] : object.items()) {
    const bool text = name == "name" || name == "summary" || name == "budget";
    if (!text && name != "problems") refuse("unknown key \"" + name + "\"");
    if (text && !value.is_string()) refuse("\"" + name + "\" is not text");
  }
  if (!object.contains("problems") || !object["problems"].is_array()) {
    refuse("\"problems\" is missing or not a list");
  }
  Preset preset{object.value("name", file.stem().string()), object.value("budget", "60s"), {}};
  std::size_t index = 0;
  for (const auto& entry : object["problems"]) {
    const auto where = fmt::format("{}: problems[{}]", file.string(), index++);
    preset.tasks.push_back({read_problem(entry, where), {}, where});
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
  const Preset preset = read_preset(find_preset(wanted));
  if (options.budget.empty()) options.budget = preset.budget;
  Tuning tuning(options, preset.tasks);
  json results = json::array();
  json comparisons = json::array();
  bool all = true;
  for (const auto& task : preset.tasks) {
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
