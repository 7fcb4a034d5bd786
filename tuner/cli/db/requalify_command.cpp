#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/chains/chains.hpp"
#include "runtime/device/system/utc.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/progress.hpp"
#include "tuner/report/report.hpp"
#include "tuner/session/requalify.hpp"
#include "tuner/tuning/workbench.hpp"

namespace greta::tuner::cli {
namespace {

struct RequalifyOptions {
  ResultOptions results;
  std::string seed;
  bool no_lock = false;
  bool json = false;
};

/// The outcome for one result.
struct Outcome {
  StoredWinner result;
  std::vector<std::string> reasons;  ///< why it was stale
  std::string skipped;               ///< why nothing was done; empty if it was requalified
  Requalification requalification;
};

/// The outcome as programs read it, and as people do.
struct OutcomeNames {
  std::string value, text;
};

OutcomeNames names_of(const Outcome& outcome) {
  if (!outcome.skipped.empty()) return {"skipped", "skipped"};
  if (outcome.requalification.stands) return {"stands", "still valid"};
  if (outcome.requalification.winner) return {"timed anew", "timed again"};
  return {"nothing is right any more", "no configuration passed"};
}

std::string outcome_text(const Outcome& outcome) {
  const Requalification& done = outcome.requalification;
  std::string text = fmt::format("{}{} on {}: {}", outcome.result.problem.key(),
                                 outcome.result.winner.cold ? "" : " (warm)",
                                 outcome.result.device_id, names_of(outcome).text);
  if (!outcome.skipped.empty()) return text + ": " + outcome.skipped + "\n";
  text +=
      fmt::format(" ({} of {} kernels unchanged; {})\n", done.unchanged, done.compiled,
                  outcome.reasons.empty() ? "it was fresh"
                                          : fmt::format("{}", fmt::join(outcome.reasons, "; ")));
  if (done.winner && !done.stands) {
    text += fmt::format(
        "  {} {}, was {} {}\n", format_time(done.winner->measurement.median_us),
        done.winner->config.shown(), format_time(outcome.result.winner.measurement.median_us),
        shown(outcome.result.problem, outcome.result.device, outcome.result.winner.config));
  }
  return text;
}

nlohmann::json outcome_json(const Outcome& outcome) {
  const Requalification& done = outcome.requalification;
  auto object = result_json(outcome.result);
  object["stale"] = outcome.reasons;
  object["outcome"] = names_of(outcome).value;
  object["skipped"] = outcome.skipped;
  object["compiled"] = done.compiled;
  object["unchanged"] = done.unchanged;
  object["now"] = nullptr;
  if (done.winner) {
    object["now"] = {{"config_text", done.winner->config.shown()},
                     {"median_us", done.winner->measurement.median_us}};
  }
  return object;
}

class Requalifier {
 public:
  explicit Requalifier(const RequalifyOptions& options)
      : seed_(read_seed(options.seed)), filter_(read_filter(options.results)) {
    if (!filter_.stale) filter_.stale = true;
    db_ = open_existing(options.results.db);
    check_device_is_known(*db_, filter_);
    EvaluatorOptions evaluates;
    evaluates.catalog = known_operations();
    WorkbenchOptions bench{
        .evaluator = std::move(evaluates), .worker = worker_command(), .name = "greta-db"};
    bench.evaluator.seed = seed_;
    bench.evaluator.cache_directory = default_cache_directory();
    bench.lock = !options.no_lock;
    bench_.emplace(std::move(bench), terminal_, stop_requested());
    judge_ = StalenessJudge(known_operations(), bench_->devices());
  }

  /// Returns the latest result of each problem that the options select, grouped by device.
  std::vector<StoredWinner> chosen() {
    auto results = db_->winners();
    std::erase_if(results, [&](const StoredWinner& one) { return !filter_.matches(one, judge_); });
    std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) {
      return a.device.fingerprint() < b.device.fingerprint();
    });
    return results;
  }

  TunedDb& db() { return *db_; }

  Outcome run(const StoredWinner& result) {
    Outcome outcome{result, judge_.reasons(result), {}, {}};
    if (is_chain(result.problem.op)) {
      outcome.skipped = "it is a choice of a model's chain; greta-tune model measures it again";
      return outcome;
    }
    if (known_operations().find(result.problem.op) == nullptr) {
      outcome.skipped = "this build has no such operation";
      return outcome;
    }
    if (is_of_vendor(result.winner)) {
      outcome.skipped = "it is a vendor's; greta-tune --allow vendor certifies it again";
      return outcome;
    }
    auto* evaluator = value_of(bench_->evaluator(result.device.fingerprint()));
    if (evaluator == nullptr) {
      outcome.skipped = "the device is not on this machine";
      return outcome;
    }
    SessionOptions session;
    session.seed = seed_;
    session.started_utc = utc_now();
    session.command = "greta-db requalify";
    Progress progress(stderr, Verbosity::normal);
    progress.on_session(result.problem, result.device, 1);
    outcome.requalification =
        requalify(*evaluator, *db_, result, session, progress, stop_requested());
    return outcome;
  }

 private:
  std::uint64_t seed_;
  ResultFilter filter_;
  std::optional<TunedDb> db_;
  Terminal terminal_;
  std::optional<Workbench> bench_;
  StalenessJudge judge_{known_operations()};
};

int requalify_results(const RequalifyOptions& options) {
  Requalifier requalifier(options);
  catch_interrupts();
  auto objects = nlohmann::json::array();
  std::int64_t done = 0, failed = 0;
  const auto results = requalifier.chosen();
  for (const auto& result : results) {
    if (stop_requested()) break;
    const Outcome outcome = requalifier.run(result);
    done += outcome.skipped.empty() ? 1 : 0;
    failed += outcome.skipped.empty() && !outcome.requalification.winner ? 1 : 0;
    objects.push_back(outcome_json(outcome));
    if (!options.json) print_text(outcome_text(outcome));
  }
  if (options.json) {
    print_json(objects);
  } else {
    print("{} of {} requalified\n", done,
          format_count(static_cast<std::int64_t>(results.size()), "result"));
  }
  const int code = end_of_writing(requalifier.db(), failed == 0 ? exit_done : exit_failed);
  if (stop_requested())
    throw CommandError(exit_failed, "interrupted; completed results are stored");
  if (!results.empty() && done == 0) {
    throw CommandError(exit_no_device, "none of the results' devices is on this machine");
  }
  return code;
}

}  // namespace

void add_requalify_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "requalify", "Update stale results: compile again, and time again where binaries changed");
  auto options = std::make_shared<RequalifyOptions>();
  add_result_options(*command, options->results);
  command->add_option("--seed", options->seed, "Seed of the inputs; random by default");
  command->add_flag("--no-lock", options->no_lock,
                    "Don't wait for another tool that measures on the same card");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer(
      "The default, the winner and the five best that are recorded are compiled and checked. If "
      "all\nbinaries are unchanged, the result stands; otherwise they are timed in rounds. --fresh "
      "does "
      "the same\nto results that are not stale. Example: greta-db requalify --device vulkan:0");
  command->callback(
      [&action, options] { action = [options] { return requalify_results(*options); }; });
}

}  // namespace greta::tuner::cli
