#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "db/determinism.hpp"
#include "db/enum_text.hpp"
#include "kernels/chains/chains.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/db/list_counters.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/csv_wide.hpp"
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
  std::string sort = "problem";
  std::size_t limit = 0;  ///< 0: all
  bool json = false;
  bool csv = false;
  bool csv_wide = false;
  bool energy = false;
  bool counters = false;
};

/// An order of results.
struct Order {
  std::string_view name;
  std::function<double(const StoredWinner&)> key;  ///< the largest first
};

const std::vector<Order>& orders() {
  static const std::vector<Order> all{
      {"time", [](const StoredWinner& result) { return result.winner.measurement.median_us; }},
      {"roofline",
       [](const StoredWinner& result) {
         return result.winner.roofline > 0 ? 1 - result.winner.roofline : -1;
       }},
      {"speedup", [](const StoredWinner& result) { return result.winner.speedup; }},
      {"regret",
       [](const StoredWinner& result) { return result.regret ? result.regret->ratio : -1; }},
  };
  return all;
}

/// Sorts the results by --sort; results that are equal in it keep their order.
void sort_results(std::vector<StoredWinner>& results, const std::string& by) {
  if (by == "age") {
    std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) {
      return a.provenance.started_utc < b.provenance.started_utc;
    });
    return;
  }
  for (const Order& order : orders()) {
    if (order.name != by) continue;
    std::stable_sort(results.begin(), results.end(),
                     [&](const auto& a, const auto& b) { return order.key(a) > order.key(b); });
  }
}

/// Returns a result's configuration in today's form, or why it is not used.
Result<MigratedConfig> usable_today(const StoredWinner& result) {
  return with_chains(known_operations())
      .usable(result.problem, result.device, result.winner.config);
}

StalenessJudge make_judge(bool probe) {
  std::vector<DeviceInfo> present;
  if (probe) {
    for (const auto& device : present_devices()) present.push_back(device.info);
  }
  return StalenessJudge(known_operations(), present);
}

std::string speedup_cell(const Winner& winner) {
  if (winner.is_default) return "default";
  if (!has_ratio(winner)) return "not known";
  return fmt::format("{:.2f}× ({:.2f} to {:.2f})", winner.speedup, winner.speedup_low,
                     winner.speedup_high);
}

std::string regret_text(const std::optional<Regret>& regret) {
  return regret ? fmt::format("{:.1f} %", 100 * (regret->ratio - 1)) : "";
}

/// Returns what a reader must know of a result before using it; empty if it is as it was certified.
std::string state_text(const StoredWinner& result, bool pinned,
                       const std::vector<std::string>& stale) {
  std::vector<std::string> parts;
  if (pinned) parts.push_back("pinned");
  if (!stale.empty()) parts.push_back(fmt::format("stale: {}", fmt::join(stale, "; ")));
  const auto usable = usable_today(result);
  if (!usable) parts.push_back("not used: " + usable.failure().message);
  if (usable && !usable->changes.empty())
    parts.push_back(fmt::format("migrated: {}", fmt::join(usable->changes, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add_row(Table& table, const StoredWinner& result, const std::string& state) {
  const Winner& winner = result.winner;
  const double us = winner.measurement.median_us;
  table.add({result.problem.key() + (winner.cold ? "" : " (warm)"),
             result.device_id + " " + result.device.architecture, winner.config.variant,
             format_time(winner.measurement),
             format_rate(work_of(known_operations(), result.problem), us),
             winner.roofline > 0 ? format_share(winner.roofline) : "", speedup_cell(winner),
             std::to_string(winner.ties.size()), short_text(determinism_of(winner.verdict)),
             regret_text(result.regret), result.provenance.started_utc.substr(0, 10), state});
}

/// Lists the answers for the least energy.
int list_energy(const TunedDb& db, bool as_json) {
  const auto mj = [](double joules) { return fmt::format("{:.3g}", 1e3 * joules); };
  auto objects = nlohmann::json::array();
  using Align = Table::Align;
  Table table({{"problem"},
               {"device"},
               {"configuration"},
               {"mJ", Align::right},
               {"default", Align::right},
               {"W", Align::right},
               {"sensor"},
               {"date"}});
  const auto all = db.energy_winners();
  for (const auto& [question, device, driver, date, winner] : all) {
    const Energy &energy = winner.energy, &usual = winner.default_energy;
    objects.push_back({{"problem", question.problem_key},
                       {"device", device},
                       {"device_fingerprint", question.device_fingerprint},
                       {"cold", question.cold},
                       {"driver", driver},
                       {"date", date},
                       {"config_text", winner.config.shown()},
                       {"is_default", winner.is_default},
                       {"joules", json_number(energy.joules)},
                       {"low", json_number(energy.low)},
                       {"high", json_number(energy.high)},
                       {"watts", json_number(energy.watts)},
                       {"launch_us", json_number(energy.us)},
                       {"default_joules", json_number(usual.joules)},
                       {"source", energy.source}});
    table.add({question.problem_key, device, winner.config.shown(),
               fmt::format("{} ({} to {})", mj(energy.joules), mj(energy.low), mj(energy.high)),
               mj(usual.joules), fmt::format("{:.0f}", energy.watts), energy.source,
               date.substr(0, 10)});
  }
  if (as_json) {
    print_json(objects);
  } else {
    if (!table.empty()) print_text(table.text());
    print("{} for the least energy, in {}\n", format_count(all.size(), "answer"),
          db.file().string());
  }
  return end_of_reading(db, exit_done);
}

void check_options(const ListOptions& options) {
  if (options.json + options.csv + options.csv_wide > 1)
    throw CommandError(exit_usage, "--json, --csv and --csv-wide: only one of them");
  if (options.counters && (options.csv || options.csv_wide || options.energy))
    throw CommandError(exit_usage,
                       "--counters: text or --json; --csv, --csv-wide and --energy are of results");
  if (options.counters && (options.results.stale || options.results.fresh))
    throw CommandError(exit_usage, "--counters: --stale and --fresh are of results");
}

Table table_of_results() {
  using Align = Table::Align;
  return Table({{"problem"},
                {"device"},
                {"variant"},
                {"time", Align::right},
                {"rate", Align::right},
                {"roofline", Align::right},
                {"speedup", Align::right},
                {"ties", Align::right},
                {"repeated"},
                {"regret", Align::right},
                {"date"},
                {"state"}});
}

int list(const ListOptions& options) {
  check_options(options);
  const TunedDb db = open_database(options.results.db, TunedDb::Mode::read_only);
  add_carried(db);
  const ResultFilter filter = read_filter(options.results);
  if (options.counters) return list_counters(db, filter, options.json);
  if (options.energy) return list_energy(db, options.json);
  auto judge = make_judge(options.probe);
  Table table = table_of_results();
  auto objects = nlohmann::json::array();
  std::vector<MeasuredResult> rows;
  std::size_t stale_count = 0;
  auto results = select_results(db, filter, judge);
  if (results.empty() && !options.json && !options.csv && !options.csv_wide) {
    if (const auto why = nothing_selected(db, options.results); !why.empty()) tell(why);
  }
  sort_results(results, options.sort);
  const std::size_t all = results.size();
  if (options.limit > 0 && options.limit < all) results.resize(options.limit);
  std::set<Question> pins;
  for (const Pin& pin : db.pins()) pins.insert(pin.question);
  for (const auto& result : results) {
    const auto stale = judge.reasons(result);
    const bool pinned = pins.contains(question_of(result));
    stale_count += stale.empty() ? 0 : 1;
    if (options.json) {
      objects.push_back(result_json(result));
      objects.back()["stale"] = stale;
      objects.back()["pinned"] = pinned;
      const auto usable = usable_today(result);
      objects.back()["migrated"] = usable ? usable->changes : std::vector<std::string>{};
      objects.back()["not_used"] =
          usable ? nlohmann::json() : nlohmann::json(usable.failure().message);
    } else if (options.csv || options.csv_wide) {
      for (auto& measured : measured_results(known_operations(), result))
        rows.push_back(std::move(measured));
    } else {
      add_row(table, result, state_text(result, pinned, stale));
    }
  }
  if (options.json) {
    print_json(objects);
  } else if (options.csv) {
    std::string csv = csv_header();
    for (const auto& row : rows) csv += csv_line(row);
    print_text(csv);
  } else if (options.csv_wide) {
    print_text(csv_wide(rows));
  } else {
    if (!table.empty()) print_text(table.text());
    print("{}{}, {} stale, in {}\n", format_count(results.size(), "result"),
          results.size() < all ? fmt::format(" of {}", all) : "", stale_count, db.file().string());
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
  std::vector<std::string> names{"problem", "age"};
  for (const Order& order : orders()) names.emplace_back(order.name);
  add_choice(*command, "--sort", options->sort,
             "problem, age (oldest first), time (longest first), roofline (farthest below it "
             "first), speedup or regret (largest first)",
             names);
  add_whole_number<std::size_t>(*command, "--limit", options->limit, "Only this number of results",
                                1, 1'000'000);
  command->add_flag(
      "--energy", options->energy,
      "List the answers for the least energy instead (greta-tune --objective energy)");
  command->add_flag("--counters", options->counters,
                    "List the hardware counters of configurations instead (docs/profile.md)");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->add_flag("--csv", options->csv, "Print CSV (docs/csv.md)");
  command->add_flag("--csv-wide", options->csv_wide,
                    "Print CSV with a column for each dimension and parameter");
  command->footer("Example: greta-db list --op gemm --device gfx942 --sort roofline --limit 10");
  command->callback([&action, options] { action = [options] { return list(*options); }; });
}

}  // namespace greta::tuner::cli
