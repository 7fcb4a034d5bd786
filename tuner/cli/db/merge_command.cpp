#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
  bool rehearse = false;
  bool json = false;
};

std::string side_text(const StoredWinner& result) {
  return fmt::format("{} ({}, {})", format_time(result.winner.measurement.median_us),
                     result.winner.config.text(), result.provenance.started_utc.substr(0, 10));
}

std::string conflict_text(const MergeConflict& conflict) {
  return fmt::format("  {} on {}{}: {} {}, not {}\n", conflict.kept.problem.key(),
                     conflict.kept.device.name, conflict.kept.winner.cold ? "" : " (warm)",
                     conflict.mine_kept ? "kept" : "took", side_text(conflict.kept),
                     side_text(conflict.dropped));
}

std::string report_text(const std::string& source, const MergeReport& report) {
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
  text += "\n";
  for (const auto& conflict : report.conflicts) text += conflict_text(conflict);
  return text;
}

nlohmann::json report_object(const std::string& source, const MergeReport& report) {
  nlohmann::json conflicts = nlohmann::json::array();
  for (const auto& conflict : report.conflicts) {
    conflicts.push_back({{"kept", result_json(conflict.kept)},
                         {"dropped", result_json(conflict.dropped)},
                         {"mine_kept", conflict.mine_kept}});
  }
  return {{"source", source},
          {"added", report.added},
          {"side_by_side", report.side_by_side},
          {"replaced", report.replaced},
          {"worse", report.worse},
          {"same", report.same},
          {"uncertified", report.uncertified},
          {"pinned", report.pinned},
          {"unsafe", report.unsafe},
          {"conflicts", conflicts}};
}

int merge_databases(const MergeOptions& options) {
  std::vector<Contents> sources;  // all are read before anything is written
  for (const auto& source : options.sources) {
    if (std::filesystem::weakly_canonical(source) ==
        std::filesystem::weakly_canonical(options.db)) {
      throw CommandError(exit_usage, fmt::format("{}: is the database that is merged into; name "
                                                 "another with --db",
                                                 source.string()));
    }
    const TunedDb db = open_source(source);
    if (const auto damage = db.check(); !damage.empty()) {
      throw CommandError(exit_failed, fmt::format("{}: damaged, nothing was merged: {}",
                                                  source.string(), damage.front()));
    }
    sources.push_back(db.contents());
  }
  TunedDb db = open_database(
      options.db, options.rehearse ? TunedDb::Mode::read_only : TunedDb::Mode::read_write);
  auto objects = nlohmann::json::array();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto name = options.sources[i].string();
    const MergeReport report =
        options.rehearse ? merge(db.contents(), sources[i]).report : db.merge(sources[i]).report;
    if (options.json) objects.push_back(report_object(name, report));
    if (!options.json) print_text(report_text(name, report));
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
  command->add_flag("--dry-run", options->rehearse,
                    "Dry run: report what would happen, change nothing");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer(
      "Results are compared only if device, driver, compiler, templates and cold or warm agree; "
      "others\nstand side by side. Trials and sessions stay in the database that recorded them: "
      "find "
      "regrets\n(greta-db regret) before merging. Example: greta-db merge a.db b.db --db all.db");
  command->callback(
      [&action, options] { action = [options] { return merge_databases(*options); }; });
}

}  // namespace greta::tuner::cli
