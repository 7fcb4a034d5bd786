#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "db/enum_text.hpp"
#include "db/json.hpp"
#include "db/regret.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"
#include "tuner/report/table.hpp"
#include "tuner/session/regret_rounds.hpp"
#include "tuner/tuning/workbench.hpp"

namespace greta::tuner::cli {
namespace {

struct RegretOptions {
  ResultOptions results;
  std::string seed;
  bool measure = false;
  bool no_lock = false;
  bool json = false;
};

/// A winner and its regret, or why it is unknown.
struct Finding {
  StoredWinner result;
  std::string unknown;
};

/// Returns the recorded regret, else measures it if there is a workbench. A failure gives the
/// reason.
Result<Regret> cost_of(const TunedDb& db, const StoredWinner& result, const StoredWinner& neighbour,
                       Workbench* bench, std::uint64_t seed) {
  if (const auto regret = recorded_regret(known_operations(), db, result, neighbour))
    return *regret;
  const auto unknown = [](std::string why) {
    return Failure{Status::unavailable, std::move(why), {}};
  };
  if (bench == nullptr) {
    return unknown(neighbour.problem.dims_text() + ": not recorded here; --measure times it");
  }
  auto* evaluator = value_of(bench->evaluator(result.device.fingerprint()));
  if (evaluator == nullptr) return unknown("the device is not on this machine");
  tell("timing " + result.problem.key());
  return measure_regret(*evaluator, result, neighbour, seed);
}

Finding find_regret(const TunedDb& db, const StoredWinner& result,
                    const std::vector<StoredWinner>& winners, Workbench* bench,
                    std::uint64_t seed) {
  Finding finding{result, {}};
  finding.result.regret.reset();
  const auto* neighbour = nearest_neighbour(known_operations(), result, winners);
  if (neighbour == nullptr) {
    finding.unknown = "no other shape's winner is near and valid here";
    return finding;
  }
  const auto regret = cost_of(db, result, *neighbour, bench, seed);
  finding.unknown = regret ? "" : regret.failure().message;
  if (regret) finding.result.regret = *regret;
  return finding;
}

void print_findings(const std::vector<Finding>& findings, bool json) {
  auto objects = nlohmann::json::array();
  using Align = Table::Align;
  Table table(
      {{"problem"}, {"device"}, {"nearest shape"}, {"costs", Align::right}, {"known from"}});
  std::int64_t known = 0;
  for (const auto& [result, unknown] : findings) {
    const auto& regret = result.regret;
    known += regret ? 1 : 0;
    objects.push_back(result_json(result));
    objects.back()["unknown"] = unknown;
    table.add({result.problem.key() + (result.winner.cold ? "" : " (warm)"), result.device_id,
               regret ? regret->neighbour : "",
               regret ? fmt::format("{:+.1f} %", 100 * (regret->ratio - 1)) : "",
               regret ? std::string(to_string(regret->source)) : unknown});
  }
  if (json) {
    print_json(objects);
    return;
  }
  if (!table.empty()) print_text(table.text());
  print("{} of {}\n", format_count(known, "regret"),
        format_count(static_cast<std::int64_t>(findings.size()), "winner"));
}

/// Returns the results that the options select, grouped by device.
std::vector<StoredWinner> choose(std::vector<StoredWinner> winners, const ResultFilter& filter) {
  StalenessJudge judge(known_operations());
  std::erase_if(winners, [&](const StoredWinner& one) { return !filter.matches(one, judge); });
  std::stable_sort(winners.begin(), winners.end(), [](const auto& a, const auto& b) {
    return a.device.fingerprint() < b.device.fingerprint();
  });
  return winners;
}

int regret(const RegretOptions& options) {
  const ResultFilter filter = read_filter(options.results);
  const auto seed = read_seed(options.seed);
  TunedDb db = open_existing(options.results.db);
  check_device_is_known(db, filter);
  std::optional<Workbench> bench;
  Terminal terminal;
  EvaluatorOptions evaluates;
  evaluates.catalog = known_operations();
  WorkbenchOptions how{
      .evaluator = std::move(evaluates), .worker = worker_command(), .name = "greta-db"};
  how.evaluator.seed = seed;
  how.evaluator.cache_directory = default_cache_directory();
  how.lock = !options.no_lock;
  if (options.measure) bench.emplace(std::move(how), terminal, stop_requested());
  if (bench) catch_interrupts();
  const auto winners = db.winners();
  const auto chosen = choose(winners, filter);
  auto* const at_hand = bench ? &*bench : nullptr;
  std::vector<Finding> findings;
  for (const auto& result : chosen) {
    if (stop_requested()) break;
    findings.push_back(find_regret(db, result, winners, at_hand, seed));
    db.set_regrets({findings.back().result});
  }
  print_findings(findings, options.json);
  return end_of_writing(db, stop_requested() ? exit_failed : exit_done);
}

}  // namespace

void add_regret_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "regret", "Determine what the nearest other shape's winner costs for each problem");
  auto options = std::make_shared<RegretOptions>();
  add_result_options(*command, options->results);
  command->add_flag("--measure", options->measure,
                    "Time configurations that are not recorded, in rounds with the winner");
  command->add_option("--seed", options->seed, "Seed of the inputs; random by default");
  command->add_flag("--no-lock", options->no_lock,
                    "Don't wait for another tool that measures on the same card");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer(
      "The regret is stored with the winner. Example: greta-db regret --op gemm --measure");
  command->callback([&action, options] { action = [options] { return regret(*options); }; });
}

}  // namespace greta::tuner::cli
