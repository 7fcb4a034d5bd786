#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "db/staleness.hpp"
#include "kernels/chains/chains.hpp"
#include "runtime/device/text/printable.hpp"
#include "tuner/cli/db/commands.hpp"
#include "tuner/cli/db/export_binaries.hpp"
#include "tuner/cli/db/shipped_summary.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/next.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

struct InfoOptions {
  std::filesystem::path db = default_database();
  bool no_shipped = false;
  bool json = false;
};

/// A device model and a summary of its contents in the database.
struct DeviceSummary {
  StoredDevice device;
  std::size_t results = 0;
  std::size_t stale = 0;
  std::size_t migrated = 0;           ///< results whose configurations are carried over
  std::vector<std::string> not_used;  ///< a line for each result that can't be
  std::size_t sessions = 0;
  std::size_t ceilings = 0;
};

std::vector<DeviceSummary> summarise(const TunedDb& db) {
  std::vector<DeviceSummary> all;
  for (auto& device : db.devices()) {
    const auto fingerprint = device.info.fingerprint();
    DeviceSummary& summary = all.emplace_back();
    summary.device = std::move(device);
    summary.ceilings = db.ceilings(fingerprint).size();
  }
  const auto find = [&](const std::string& fingerprint) -> DeviceSummary& {
    const auto found = std::find_if(all.begin(), all.end(), [&](const DeviceSummary& one) {
      return one.device.info.fingerprint() == fingerprint;
    });
    if (found == all.end()) throw Error("there is no device " + fingerprint);
    return *found;
  };
  StalenessJudge judge(known_operations());
  for (const auto& result : db.results()) {
    DeviceSummary& summary = find(result.device.fingerprint());
    ++summary.results;
    summary.stale += judge.reasons(result).empty() ? 0 : 1;
    const auto usable =
        with_chains(known_operations()).usable(result.problem, result.device, result.winner.config);
    summary.migrated += usable && !usable->changes.empty() ? 1 : 0;
    if (usable) continue;
    summary.not_used.push_back(fmt::format("{} of {}: {}", result.problem.key(),
                                           result.provenance.started_utc.substr(0, 10),
                                           usable.failure().message));
  }
  for (const auto& session : db.sessions()) ++find(session.device_fingerprint).sessions;
  return all;
}

/// Counts sessions without an end: they are running or were killed.
std::size_t open_sessions(const TunedDb& db) {
  const auto sessions = db.sessions();
  return static_cast<std::size_t>(
      std::count_if(sessions.begin(), sessions.end(),
                    [](const StoredSession& session) { return !session.outcome; }));
}

nlohmann::json info_json(const TunedDb& db, const std::vector<DeviceSummary>& devices) {
  const auto counts = db.counts();
  nlohmann::json object{{"file", db.file().string()},
                        {"bytes", std::filesystem::file_size(db.file())},
                        {"schema", db.file_schema()},
                        {"shipped", db.shipped()},
                        {"results", counts.winners},
                        {"trials", counts.trials},
                        {"sessions", counts.sessions},
                        {"sessions_without_an_end", open_sessions(db)},
                        {"problems", counts.problems},
                        {"devices", nlohmann::json::array()},
                        {"damaged", damage_json(db.damaged())},
                        {"pinned", db.pins().size()},
                        {"binaries", nlohmann::json::array()}};
  for (const BinaryTotals& one : db.binaries()) {
    object["binaries"].push_back(
        {{"target", one.target}, {"count", one.count}, {"bytes", one.bytes}});
  }
  for (const auto& summary : devices) {
    const DeviceInfo& info = summary.device.info;
    auto cards = nlohmann::json::array();
    for (const StoredCard& card : summary.device.cards) {
      cards.push_back({{"uuid", card.card.uuid},
                       {"pci_address", card.card.pci_address},
                       {"first_seen", card.first_seen_utc},
                       {"last_seen", card.last_seen_utc}});
    }
    object["devices"].push_back({{"id", info.id()},
                                 {"name", info.name},
                                 {"architecture", info.architecture},
                                 {"fingerprint", info.fingerprint()},
                                 {"driver", info.driver},
                                 {"compiler", info.compiler},
                                 {"first_seen", summary.device.first_seen_utc},
                                 {"last_seen", summary.device.last_seen_utc},
                                 {"results", summary.results},
                                 {"stale", summary.stale},
                                 {"migrated", summary.migrated},
                                 {"not_used", summary.not_used},
                                 {"sessions", summary.sessions},
                                 {"ceilings", summary.ceilings},
                                 {"cards", cards}});
  }
  return object;
}

/// Returns how many results are carried over to today's templates, and a line for each of the first
/// ones that can't be.
std::string carried_over_text(const std::vector<DeviceSummary>& devices) {
  constexpr std::size_t most = 20;
  std::size_t migrated = 0;
  std::vector<std::string> lines;
  for (const auto& summary : devices) {
    migrated += summary.migrated;
    for (const auto& line : summary.not_used) {
      lines.push_back(fmt::format("not used: {} on {}", line, summary.device.info.id()));
    }
  }
  std::string text;
  if (migrated > 0) {
    text += fmt::format("{} of older templates, carried over to today's (greta-db list)\n",
                        format_count(static_cast<std::int64_t>(migrated), "configuration"));
  }
  const std::size_t shown = std::min(most, lines.size());
  for (std::size_t i = 0; i < shown; ++i) text += one_line(lines[i]) + "\n";
  if (lines.size() > most) text += fmt::format("and {} more\n", lines.size() - most);
  return text;
}

std::string info_text(const TunedDb& db, const std::vector<DeviceSummary>& devices) {
  const auto counts = db.counts();
  std::string text = format_row("file", db.file().string());
  text += format_row(
      "size", fmt::format("{}, schema {}{}",
                          format_bytes(static_cast<double>(std::filesystem::file_size(db.file()))),
                          db.file_schema(), db.shipped() ? ", shipped" : ""));
  text +=
      format_row("holds", fmt::format("{} for {}, {} of {}", format_count(counts.winners, "result"),
                                      format_count(counts.problems, "problem"),
                                      format_count(counts.trials, "trial"),
                                      format_count(counts.sessions, "session")));
  if (const auto peers = db.contents().peers.size(); peers > 0) {
    text += format_row("", fmt::format("{} of other libraries, imported",
                                       format_count(static_cast<std::int64_t>(peers), "time")));
  }
  if (const auto pins = db.pins().size(); pins > 0)
    text += format_row("", fmt::format("{} pinned", format_count(pins, "answer")));
  for (const BinaryTotals& one : db.binaries()) text += format_row("", binaries_text({one}));
  if (const auto open = open_sessions(db); open > 0) {
    text += format_row("", fmt::format("{} running or killed", format_count(open, "session")));
  }
  if (devices.empty()) return text;
  using Align = Table::Align;
  Table table({{"device"},
               {"architecture"},
               {"driver"},
               {"cards", Align::right},
               {"results", Align::right},
               {"stale", Align::right},
               {"sessions", Align::right},
               {"last seen"}});
  for (const auto& summary : devices) {
    const DeviceInfo& info = summary.device.info;
    table.add({info.id() + " " + info.name, info.architecture, info.driver,
               std::to_string(summary.device.cards.size()), std::to_string(summary.results),
               std::to_string(summary.stale), std::to_string(summary.sessions),
               summary.device.last_seen_utc.substr(0, 10)});
  }
  return text + "\n" + table.text() + carried_over_text(devices);
}

int info(const InfoOptions& options) {
  const auto shipped = options.no_shipped ? std::vector<ShippedSummary>{} : summarise_shipped();
  // A user who has tuned nothing has no database yet, but GRETA's.
  if (options.db == default_database() && !std::filesystem::exists(options.db) &&
      !shipped.empty()) {
    if (options.json) {
      nlohmann::json object;
      object["file"] = nullptr;
      object["below"] = shipped_json(shipped);
      print_json(object);
    } else {
      print_text(format_row("file", options.db.string() + ", not created yet") +
                 shipped_text(shipped));
    }
    return exit_done;
  }
  const TunedDb db = open_database(options.db, TunedDb::Mode::read_only);
  add_carried(db);
  const auto devices = summarise(db);
  if (options.json) {
    auto object = info_json(db, devices);
    object["below"] = shipped_json(shipped);
    print_json(object);
  } else {
    print_text(info_text(db, devices) + shipped_text(shipped));
    if (!db.shipped()) print_text(next_text(db));
  }
  return end_of_reading(db, exit_done);
}

}  // namespace

void add_info_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("info", "Show the contents of a database by device, and what GRETA ships");
  auto options = std::make_shared<InfoOptions>();
  command->add_option("--db", options->db, "Database of trials and winners")->capture_default_str();
  add_kernels_option(*command);
  command->add_flag("--no-shipped", options->no_shipped, "Omit the databases that GRETA ships");
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->footer("Example: greta-db info --db results/tuned.db");
  command->callback([&action, options] { action = [options] { return info(*options); }; });
}

}  // namespace greta::tuner::cli
