#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/replay/replay_run.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

struct ReplayRequest {
  std::vector<fs::path> spaces;
  std::vector<std::string> strategies;
  std::string budget = "200";
  std::uint64_t seeds = 30;
  std::uint64_t first_seed = 1;
  int ahead = 1;
  unsigned jobs = 0;
  fs::path trace;
  bool summary = false;
  bool json = false;
};

/// The runs of one strategy: by recording, then by seed.
using StrategyRuns = std::vector<std::vector<ReplayRun>>;

/// Returns a file's name without the ending of its format.
std::string space_name(const fs::path& file) {
  fs::path name = file;
  for (const char* const ending : {".gz", ".jsonl", ".json"}) {
    if (name.extension() == ending) name.replace_extension();
  }
  return name.string();
}

/// Names recordings by their files; with the folders if names would repeat.
std::vector<std::string> space_names(const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files)
    names.push_back(fs::path(space_name(file)).filename().string());
  if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) return names;
  for (std::size_t i = 0; i < files.size(); ++i) names[i] = space_name(files[i]);
  return names;
}

std::vector<Recording> load_all(const std::vector<fs::path>& files) {
  std::vector<Recording> recordings;
  for (const fs::path& file : files) {
    auto recording = Recording::load(file);
    if (!recording) throw CommandError(exit_usage, "--space: " + recording.failure().message);
    if (std::isinf(recording->optimum_us())) {
      throw CommandError(exit_usage,
                         fmt::format("--space {}: every configuration failed", file.string()));
    }
    if (recording->completed()) {
      tell(fmt::format("{}: its end is missing; {} configurations are complete", file.string(),
                       recording->space().count()));
    }
    recordings.push_back(*std::move(recording));
  }
  return recordings;
}

/// Runs every strategy on every recording with every seed, on several threads.
std::vector<StrategyRuns> run_all(const std::vector<Recording>& recordings,
                                  const ReplayRequest& request, const Budget& budget) {
  std::vector<StrategyRuns> runs(
      request.strategies.size(),
      StrategyRuns(recordings.size(), std::vector<ReplayRun>(request.seeds)));
  const std::uint64_t tasks = recordings.size() * request.seeds;
  std::atomic<std::uint64_t> next = 0;
  const auto work = [&] {
    for (std::uint64_t task = next++; task < tasks; task = next++) {
      const std::uint64_t place = task % request.seeds;
      const std::size_t recording = task / request.seeds;
      const std::uint64_t seed = request.first_seed + place;
      const Recording shuffled = recordings[recording].shuffled(seed);
      for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i][recording][place] =
            replay(shuffled, request.strategies[i],
                   {.budget = budget, .seed = seed, .ahead = request.ahead});
      }
    }
  };
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const std::uint64_t threads =
      std::min<std::uint64_t>(request.jobs > 0 ? request.jobs : cores, tasks);
  std::vector<std::jthread> workers;
  for (std::uint64_t i = 0; i < threads; ++i) workers.emplace_back(work);
  workers.clear();  // waits
  return runs;
}

/// Returns a time in ms, or an empty field if there is none.
std::string field_ms(double us) {
  return std::isfinite(us) ? fmt::format("{:.9g}", us * 1e-3) : "";
}

void write_trace(const ReplayRequest& request, const std::vector<std::string>& names,
                 const std::vector<StrategyRuns>& runs) {
  std::ofstream file(request.trace, std::ios::binary | std::ios::trunc);
  file << "space,strategy,seed,evaluation,time_ms,best_ms\n";
  for (std::size_t space = 0; space < names.size(); ++space) {
    for (std::size_t strategy = 0; strategy < runs.size(); ++strategy) {
      for (std::size_t place = 0; place < request.seeds; ++place) {
        double best = std::numeric_limits<double>::infinity();
        std::uint64_t evaluation = 0;
        for (const double us : runs[strategy][space][place].times_us) {
          best = std::min(best, us);
          file << fmt::format("{},{},{},{},{},{}\n", csv_quoted(names[space]),
                              csv_quoted(request.strategies[strategy]), request.first_seed + place,
                              ++evaluation, field_ms(us), field_ms(best));
        }
      }
    }
  }
  if (!file.flush()) {
    throw CommandError(exit_failed,
                       fmt::format("--trace {}: can't be written", request.trace.string()));
  }
}

std::string evaluations_text(double evaluations) {
  return std::isinf(evaluations) ? "never" : fmt::format("{:.0f}", evaluations);
}

void print_summary(const std::vector<ReplaySummary>& summaries) {
  using Align = Table::Align;
  std::vector<Table::Column> columns{{"strategy"}};
  for (const std::uint64_t evaluations : summary_evaluations()) {
    columns.push_back({fmt::format("after {}", evaluations), Align::right});
  }
  for (const char* const title : {"to 10 %", "to 5 %", "runs in 5 %", "ask, ms", "longest"}) {
    columns.push_back({title, Align::right});
  }
  Table table(columns);
  for (const ReplaySummary& summary : summaries) {
    std::vector<std::string> cells{summary.strategy};
    for (std::size_t i = 0; i < summary_evaluations().size(); ++i) {
      cells.push_back(i < summary.shares.size() ? fmt::format("{:.4f}", summary.shares[i]) : "");
    }
    cells.push_back(evaluations_text(summary.median_to_10));
    cells.push_back(evaluations_text(summary.median_to_5));
    cells.push_back(fmt::format("{:.1f} %", 100 * summary.runs_within_5));
    cells.push_back(fmt::format("{:.3f}", summary.ask_ms));
    cells.push_back(fmt::format("{:.2f}", summary.longest_ask_ms));
    table.add(std::move(cells));
  }
  print_text(table.text());
}

void print_spaces(const std::vector<std::string>& names, const ReplayRequest& request,
                  const std::vector<StrategyRuns>& runs) {
  for (std::size_t space = 0; space < names.size(); ++space) {
    std::vector<ReplaySummary> summaries;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      summaries.push_back(summarise(request.strategies[i], {runs[i][space]}));
    }
    print(stdout, "{}\n", names[space]);
    print_summary(summaries);
    print(stdout, "\n");
  }
}

nlohmann::ordered_json summary_json(const ReplaySummary& summary) {
  nlohmann::ordered_json object{{"strategy", summary.strategy}};
  for (std::size_t i = 0; i < summary.shares.size(); ++i) {
    object["share"][std::to_string(summary_evaluations()[i])] = summary.shares[i];
  }
  const auto number = [](double value) {
    return std::isinf(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  object["median_to_10_percent"] = number(summary.median_to_10);
  object["median_to_5_percent"] = number(summary.median_to_5);
  object["runs_within_5_percent"] = summary.runs_within_5;
  object["ask_ms"] = summary.ask_ms;
  object["longest_ask_ms"] = summary.longest_ask_ms;
  return object;
}

void print_results(const std::vector<std::string>& names, const ReplayRequest& request,
                   const std::vector<StrategyRuns>& runs) {
  std::vector<ReplaySummary> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    all.push_back(summarise(request.strategies[i], runs[i]));
  }
  if (request.json) {
    nlohmann::ordered_json object{{"format", "greta-replay 1"},
                                  {"spaces", names},
                                  {"seeds", request.seeds},
                                  {"strategies", nlohmann::ordered_json::array()}};
    for (const ReplaySummary& summary : all) object["strategies"].push_back(summary_json(summary));
    return print_json(object);
  }
  if (!request.summary && names.size() > 1) print_spaces(names, request, runs);
  print(
      stdout, "share of the optimum: {} of {} seeds each\n",
      names.size() == 1 ? names.front() : fmt::format("geometric mean of {} spaces", names.size()),
      request.seeds);
  print_summary(all);
}

int replay_spaces(const ReplayRequest& request) {
  const Budget budget = read_budget(request.budget);
  if (budget.kind() == Budget::Kind::seconds) {
    throw CommandError(exit_usage, fmt::format("--budget {}: must be a number of evaluations or a "
                                               "share of the space, since a replay takes no time",
                                               request.budget));
  }
  for (const std::string& strategy : request.strategies) {
    if (auto known = parse_strategy(strategy); !known) throw bad_option(known.failure());
  }
  if (!request.trace.empty()) check_folder("--trace", request.trace);
  const auto recordings = load_all(request.spaces);
  const auto names = space_names(request.spaces);
  const auto runs = run_all(recordings, request, budget);
  if (!request.trace.empty()) write_trace(request, names, runs);
  print_results(names, request, runs);
  return exit_done;
}

}  // namespace

void add_replay_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "replay", "Run search strategies on recorded spaces in place of a device (docs/search.md)");
  auto request = std::make_shared<ReplayRequest>();
  request->strategies = {"auto"};
  command
      ->add_option("--space", request->spaces,
                   "A recording: Kernel Tuner's cache, T4 results or GRETA's own, plain or .gz; "
                   "may be repeated")
      ->required();
  command
      ->add_option("--strategy", request->strategies,
                   names_of_strategies() + "; options as NAME:key=value,key=value; may be repeated")
      ->capture_default_str();
  command->add_option("--budget", request->budget, "Evaluations (200) or share of the space (5%)")
      ->capture_default_str();
  add_whole_number<std::uint64_t>(*command, "--seeds", request->seeds,
                                  "Number of runs, each with its own seed", 1, 100000)
      ->capture_default_str();
  add_whole_number<std::uint64_t>(*command, "--seed", request->first_seed, "The first seed", 1,
                                  UINT32_MAX)
      ->capture_default_str();
  add_whole_number<int>(*command, "--ahead", request->ahead,
                        "Configurations asked for before the first result is reported", 1, 1024)
      ->capture_default_str();
  add_whole_number<unsigned>(*command, "--jobs", request->jobs, "Threads; default: all cores", 1,
                             1024);
  command->add_option("--trace", request->trace, "Write every evaluation to this CSV file")
      ->group("Output");
  command->add_flag("--summary", request->summary, "Print only the means over all spaces")
      ->group("Output");
  command->add_flag("--json", request->json, "Print one JSON object (docs/json.md)")
      ->group("Output");
  command->footer(
      "Example:\n  greta-tune replay --space gemm.json.gz --strategy auto "
      "--strategy random --seeds 30");
  command->callback([&action, request] { action = [request] { return replay_spaces(*request); }; });
}

}  // namespace greta::tuner::cli
