#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct PruneOptions {
  ResultOptions results;
  bool trials = false, failed = false, winners = false, superseded = false, damaged = false;
  bool rehearse = false;
  bool json = false;
};

bool filters(const ResultFilter& filter) {
  return !filter.op.empty() || filter.dtype || filter.out_dtype || !filter.device.empty() ||
         !filter.driver.empty() || !filter.variant.empty() || !filter.dims.empty() || filter.cold ||
         filter.stale;
}

void check(const PruneOptions& options, const ResultFilter& filter) {
  const bool trials = options.trials || options.failed;
  if (!trials && !options.winners && !options.superseded && !options.damaged) {
    throw CommandError(
        exit_usage,
        "prune: needs one of --trials, --failed, --superseded, --results and --damaged");
  }
  if (options.damaged && filters(filter)) {
    throw CommandError(exit_usage,
                       "--damaged: removes all damaged rows; options cannot select among them, "
                       "because their contents are not reliable");
  }
  if (options.winners && !filters(filter)) {
    throw CommandError(
        exit_usage, "--results: would remove all results; select some, for example with --stale");
  }
  if (trials && (filter.stale || !filter.variant.empty())) {
    throw CommandError(exit_usage,
                       fmt::format("{}: trials can't be selected by --variant, --stale or "
                                   "--fresh",
                                   options.trials ? "--trials" : "--failed"));
  }
}

/// Keeps results that have a later one for the same problem, device and cache state; those of a
/// vendor's library, a later one of the library. Later results come first.
void keep_superseded(std::vector<StoredWinner>& results) {
  std::set<std::tuple<std::string, std::string, bool, bool>> seen;
  std::erase_if(results, [&](const StoredWinner& result) {
    return seen
        .emplace(result.problem.key(), result.device.fingerprint(), result.winner.cold,
                 is_of_vendor(result.winner))
        .second;
  });
}

PruneRequest make_request(const TunedDb& db, const PruneOptions& options,
                          const ResultFilter& filter) {
  PruneRequest request;
  request.damaged = options.damaged;
  StalenessJudge judge(known_operations());
  if (options.winners || options.superseded) {
    auto results = db.results();
    if (!options.winners) keep_superseded(results);
    std::erase_if(results,
                  [&](const StoredWinner& result) { return !filter.matches(result, judge); });
    request.winners = std::move(results);
  }
  request.only_failed = !options.trials;
  if (!options.trials && !options.failed) return request;
  for (const auto& [session, device] : select_sessions(db, filter)) {
    if (session.outcome) request.trials_of.push_back(session.id);  // else it may be running
  }
  return request;
}

/// Reports intact rows that are removed because they refer to damaged ones.
void tell_orphans(const std::vector<DamagedRow>& rows, bool rehearsed) {
  if (rows.empty()) return;
  tell(fmt::format("{} that {} removed with damaged ones:",
                   format_count(static_cast<std::int64_t>(rows.size()), "intact row"),
                   rehearsed ? "would be" : "were"));
  tell_rows(rows);
}

int prune(const PruneOptions& options) {
  const ResultFilter filter = read_filter(options.results);
  check(options, filter);
  TunedDb db = open_existing(options.results.db);
  check_device_is_known(db, filter);
  const auto before = std::filesystem::file_size(db.file());
  const Pruned pruned = db.prune(make_request(db, options, filter), options.rehearse);
  if (!options.rehearse) db.compact();
  const auto after = std::filesystem::file_size(db.file());
  const auto end = [&] {
    tell_orphans(pruned.orphans, options.rehearse);
    return options.rehearse ? end_of_reading(db, exit_done) : end_of_writing(db, exit_done);
  };
  if (options.json) {
    print_json(nlohmann::json{{"rehearsed", options.rehearse},
                              {"results", pruned.winners},
                              {"trials", pruned.trials},
                              {"sessions", pruned.sessions},
                              {"devices", pruned.devices},
                              {"damaged", pruned.damaged},
                              {"orphans", damage_json(pruned.orphans)},
                              {"bytes_before", before},
                              {"bytes_after", after}});
    return end();
  }
  if (options.damaged) {
    print("{} {} and rows that refer to them\n", options.rehearse ? "would remove" : "removed",
          format_count(pruned.damaged, "damaged row"));
  }
  print("{} {}, {}, {} and {}{}\n", options.rehearse ? "would remove" : "removed",
        format_count(pruned.winners, "result"), format_count(pruned.trials, "trial"),
        format_count(pruned.sessions, "session"), format_count(pruned.devices, "device"),
        options.rehearse ? ""
                         : fmt::format("; {} is {} (was {})", db.file().string(),
                                       format_bytes(static_cast<double>(after)),
                                       format_bytes(static_cast<double>(before))));
  return end();
}

}  // namespace

void add_prune_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("prune", "Remove trials, results or damaged rows");
  auto options = std::make_shared<PruneOptions>();
  add_result_options(*command, options->results);
  const std::string group = "What to remove";
  command->add_flag("--trials", options->trials, "Raw trials of ended sessions; winners stay")
      ->group(group);
  command->add_flag("--failed", options->failed, "Only failed trials, with their logs")
      ->group(group);
  command
      ->add_flag("--superseded", options->superseded,
                 "Results superseded by a later one of another driver, compiler or template")
      ->group(group);
  command->add_flag("--results", options->winners, "The results that the options select")
      ->group(group);
  command->add_flag("--damaged", options->damaged, "Damaged rows, and rows that refer to them")
      ->group(group);
  command->add_flag("--dry-run", options->rehearse,
                    "Dry run: report what would be removed, remove nothing");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer("Example: greta-db prune --results --stale --dry-run");
  command->callback([&action, options] { action = [options] { return prune(*options); }; });
}

}  // namespace greta::tuner::cli
