#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"
#include "tuner/report/table.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {
namespace {

struct ListOptions {
  ResultOptions results;
  bool probe = false;
  bool json = false;
  bool csv = false;
};

StalenessJudge make_judge(bool probe) {
  std::vector<DeviceInfo> present;
  if (probe) {
    for (const auto& device : present_devices()) present.push_back(device.info);
  }
  return StalenessJudge(Catalog::built_in(), present);
}

std::string ratio_text(double ratio) {
  return ratio > 0 ? fmt::format("{:.2f}×", ratio) : "";
}

std::string regret_text(const std::optional<Regret>& regret) {
  return regret ? fmt::format("{:.1f} %", 100 * (regret->ratio - 1)) : "";
}

void add_row(Table& table, const StoredWinner& result, const std::vector<std::string>& stale) {
  const Winner& winner = result.winner;
  const double us = winner.measurement.median_us;
  table.add({result.problem.key() + (winner.cold ? "" : " (warm)"),
             result.device_id + " " + result.device.architecture, winner.config.variant,
             format_time(us), format_rate(work_of(Catalog::built_in(), result.problem), us),
             winner.is_default ? "default" : ratio_text(winner.speedup),
             std::to_string(winner.ties.size()), regret_text(result.regret),
             result.provenance.started_utc.substr(0, 10),
             stale.empty() ? "" : fmt::format("stale: {}", fmt::join(stale, "; "))});
}

int list(const ListOptions& options) {
  if (options.json && options.csv) throw CommandError(exit_usage, "--json: not with --csv");
  const ResultFilter filter = read_filter(options.results);
  const TunedDb db = open_database(options.results.db, TunedDb::Mode::read_only);
  auto judge = make_judge(options.probe);
  using Align = Table::Align;
  Table table({{"problem"},
               {"device"},
               {"variant"},
               {"time", Align::right},
               {"rate", Align::right},
               {"speedup", Align::right},
               {"ties", Align::right},
               {"regret", Align::right},
               {"date"},
               {"state"}});
  auto objects = nlohmann::json::array();
  std::string csv = csv_header();
  std::size_t stale_count = 0;
  const auto results = select_results(db, filter, judge);
  for (const auto& result : results) {
    const auto stale = judge.reasons(result);
    stale_count += stale.empty() ? 0 : 1;
    if (options.json) {
      objects.push_back(result_json(result));
      objects.back()["stale"] = stale;
    } else if (options.csv) {
      for (const auto& measured : measured_results(Catalog::built_in(), result))
        csv += csv_line(measured);
    } else {
      add_row(table, result, stale);
    }
  }
  if (options.json) {
    print_json(objects);
  } else if (options.csv) {
    print_text(csv);
  } else {
    if (!table.empty()) print_text(table.text());
    print("{}, {} stale, in {}\n", format_count(results.size(), "result"), stale_count,
          db.file().string());
  }
  return end_of_reading(db, exit_done);
}

}  // namespace

void add_list_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "list", "List results, one per row, including those of earlier drivers and templates");
  auto options = std::make_shared<ListOptions>();
  add_result_options(*command, options->results);
  command->add_flag(
      "--probe", options->probe,
      "Determine staleness by the devices of this machine, not by what the database recorded last");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->add_flag("--csv", options->csv, "Print CSV (docs/csv.md)");
  command->footer("Example: greta-db list --op gemm --device gfx942 --dtype f16");
  command->callback([&action, options] { action = [options] { return list(*options); }; });
}

}  // namespace greta::tuner::cli
