#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "db/json.hpp"
#include "kernels/catalog.hpp"
#include "tuner/cli/commands.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/tuning.hpp"
#include "tuner/report/format.hpp"

namespace greta {
namespace {

struct ShowOptions {
  std::filesystem::path db = default_database();
  std::string op;
  std::string device;
  bool json = false;
};

nlohmann::json winner_json(const StoredWinner& stored) {
  auto object = to_json(stored.winner);
  object["config_text"] = stored.winner.config.text();
  return {{"problem", stored.problem.key()},
          {"device", stored.device_name},
          {"device_id", stored.device_id},
          {"device_fingerprint", stored.device_fingerprint},
          {"driver", stored.provenance.driver},
          {"compiler", stored.provenance.compiler},
          {"greta_version", stored.provenance.greta_version},
          {"date", stored.provenance.started_utc},
          {"winner", object}};
}

std::string winner_lines(const StoredWinner& stored) {
  const Winner& winner = stored.winner;
  const auto* kernel_template = find_template(stored.problem.op);
  const double flops = kernel_template != nullptr ? kernel_template->work(stored.problem).flops : 0;
  return fmt::format(
      "{}{}\n  {}\n  {}, {}, {} of the roofline, {:.2f}× the default ({:.2f} to {:.2f}){}\n"
      "  {} {}, {}, {}\n",
      stored.problem.key(), winner.cold ? "" : " (warm)", winner.config.text(),
      format_time(winner.median_us), format_rate(flops, winner.median_us),
      format_share(winner.roofline), winner.speedup, winner.speedup_low, winner.speedup_high,
      winner.ties.empty() ? "" : fmt::format(", {} ties", winner.ties.size()), stored.device_id,
      stored.device_name, stored.provenance.driver, stored.provenance.started_utc);
}

int show(const ShowOptions& options) {
  if (!options.op.empty() && find_template(options.op) == nullptr) {
    std::string names;
    for (const auto* entry : catalog()) names += (names.empty() ? "" : ", ") + entry->name;
    throw CommandError(exit_usage, fmt::format("--op {}: must be one of {}", options.op, names));
  }
  const TunedDb db = open_database(options.db, TunedDb::Mode::read_only);
  nlohmann::json list = nlohmann::json::array();
  std::string text;
  for (const auto& stored : db.winners()) {
    if (!options.op.empty() && stored.problem.op != options.op) continue;
    const bool wanted = options.device.empty() || options.device == stored.device_id ||
                        stored.device_name.find(options.device) != std::string::npos;
    if (!wanted) continue;
    list.push_back(winner_json(stored));
    text += winner_lines(stored);
  }
  const auto counts = db.counts();
  text +=
      fmt::format("{} winners shown; {} holds {} winners and {} trials of {} sessions\n",
                  list.size(), db.file().string(), counts.winners, counts.trials, counts.sessions);
  fmt::print("{}", options.json ? list.dump(2) + "\n" : text);
  return exit_done;
}

}  // namespace

void add_show_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("show", "Show the winners that are known");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("--db", options->db, "Database of trials and winners")->capture_default_str();
  command->add_option("--op", options->op, "Only this operation");
  command->add_option("--device", options->device, "Only devices with this id or part of a name");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([&action, options] { action = [options] { return show(*options); }; });
}

}  // namespace greta
