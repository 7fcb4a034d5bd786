#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "db/history.hpp"
#include "db/merge.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner::cli {
namespace {

struct MergeOptions {
  std::vector<std::filesystem::path> sources;
  std::filesystem::path db = default_database();
  bool trials = false;
  bool rehearse = false;
  bool json = false;
};

/// A source: its contents, and the file itself for its trials.
struct Source {
  std::string name;
  Contents contents;
  std::optional<TunedDb> db;
};

std::string side_text(const StoredWinner& result) {
  return fmt::format("{} ({}, {})", format_time(result.winner.measurement.median_us),
                     result.winner.config.shown(), result.provenance.started_utc.substr(0, 10));
}

std::string conflict_text(const MergeConflict& conflict) {
  return fmt::format("  {} on {}{}: {} {}, not {}\n", conflict.kept.problem.key(),
                     conflict.kept.device.name, conflict.kept.winner.cold ? "" : " (warm)",
                     conflict.mine_kept ? "kept" : "took", side_text(conflict.kept),
                     side_text(conflict.dropped));
}

std::string report_text(const std::string& source, const MergeReport& report,
                        const std::optional<HistoryMerge>& history) {
  std::string text = fmt::format(
      "{}: {} added ({} beside results of other environments), {} better, {} worse, {} the same",
      source, report.added, report.side_by_side, report.replaced, report.worse, report.same);
  if (report.uncertified > 0) text += fmt::format(", {} not certified", report.uncertified);
  if (report.pinned > 0)
    text += fmt::format(", {} skipped because the answer here is pinned", report.pinned);
  if (report.unsafe > 0) {
    text += fmt::format(", {} taken over (greta-bench doctor checks again)",
                        format_count(report.unsafe, "failed health check"));
  }
  if (history) {
    text += fmt::format("; {} with {} taken over", format_count(history->sessions, "session"),
                        format_count(history->trials, "trial"));
  }
  text += "\n";
  for (const auto& conflict : report.conflicts) text += conflict_text(conflict);
  return text;
}

nlohmann::json report_object(const std::string& source, const MergeReport& report,
                             const std::optional<HistoryMerge>& history) {
  nlohmann::json conflicts = nlohmann::json::array();
  for (const auto& conflict : report.conflicts) {
    conflicts.push_back({{"kept", result_json(conflict.kept)},
                         {"dropped", result_json(conflict.dropped)},
                         {"mine_kept", conflict.mine_kept}});
  }
  nlohmann::json object{{"source", source},
                        {"added", report.added},
                        {"side_by_side", report.side_by_side},
                        {"replaced", report.replaced},
                        {"worse", report.worse},
                        {"same", report.same},
                        {"uncertified", report.uncertified},
                        {"pinned", report.pinned},
                        {"unsafe", report.unsafe},
                        {"conflicts", conflicts}};
  if (history) {
    object["sessions"] = history->sessions;
    object["trials"] = history->trials;
    object["comparisons"] = history->comparisons;
  }
  return object;
}

int merge_databases(const MergeOptions& options) {
  std::vector<Source> sources;  // all are read before anything is written
  for (const auto& source : options.sources) {
    if (std::filesystem::weakly_canonical(source) ==
        std::filesystem::weakly_canonical(options.db)) {
      throw CommandError(exit_usage, fmt::format("{}: is the database that is merged into; name "
                                                 "another with --db",
                                                 source.string()));
    }
    TunedDb db = open_source(source);
    if (const auto damage = db.check(); !damage.empty()) {
      throw CommandError(exit_failed, fmt::format("{}: damaged, nothing was merged: {}",
                                                  source.string(), damage.front()));
    }
    if (options.trials && db.shipped()) {
      throw CommandError(
          exit_usage,
          fmt::format("--trials: {} is a shipped database, which has none", source.string()));
    }
    sources.push_back({source.string(), db.contents(), std::nullopt});
    if (options.trials) sources.back().db.emplace(std::move(db));
  }
  TunedDb db = open_database(
      options.db, options.rehearse ? TunedDb::Mode::read_only : TunedDb::Mode::read_write);
  auto objects = nlohmann::json::array();
  for (const Source& source : sources) {
    const MergeReport report = options.rehearse ? merge(db.contents(), source.contents).report
                                                : db.merge(source.contents).report;
    std::optional<HistoryMerge> history;
    if (source.db) history = db.merge_history(*source.db, options.rehearse);
    if (options.json) {
      objects.push_back(report_object(source.name, report, history));
    } else {
      print_text(report_text(source.name, report, history));
    }
  }
  if (options.json) print_json(objects);
  return options.rehearse ? end_of_reading(db, exit_done) : end_of_writing(db, exit_done);
}

}  // namespace

void add_merge_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("merge", "Take over the better certified results of other databases");
  auto options = std::make_shared<MergeOptions>();
  command->add_option("from", options->sources, "Databases to merge; they are only read")
      ->required();
  command->add_option("--db", options->db, "Database that is merged into")->capture_default_str();
  command->add_flag("--trials", options->trials,
                    "Also take over sessions, trials and comparisons; merging again adds nothing");
  command->add_flag("--dry-run", options->rehearse,
                    "Dry run: report what would happen, change nothing");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer(
      "Results are compared only if device, driver, compiler, templates and cold or warm agree; "
      "others\nstand side by side. Without --trials, find regrets (greta-db regret) before "
      "merging: "
      "they need\nthe trials, which stay in the database that recorded them. Example:\n  greta-db "
      "merge "
      "a.db b.db --db all.db");
  command->callback(
      [&action, options] { action = [options] { return merge_databases(*options); }; });
}

}  // namespace greta::tuner::cli
