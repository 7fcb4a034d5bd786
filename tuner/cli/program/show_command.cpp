#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "db/determinism.hpp"
#include "db/hardware.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/plot.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner::cli {
namespace {

struct ShowOptions {
  ResultOptions results;
  bool json = false;
  bool plot = false;
};

/// A hardware model and its winners: for each problem, one per API.
struct Hardware {
  std::vector<DeviceInfo> devices;
  std::vector<HardwareWinners> problems;
};

std::vector<Hardware> by_hardware(std::vector<HardwareWinners> all, const HardwareGroups& groups) {
  std::vector<Hardware> models;
  for (auto& problem : all) {
    const DeviceInfo& device = problem.winners.front().device;
    auto model = std::find_if(models.begin(), models.end(), [&](const Hardware& one) {
      return groups.same(one.devices.front(), device);
    });
    if (model == models.end()) model = models.insert(models.end(), Hardware{});
    for (const auto& winner : problem.winners) {
      const bool known = std::any_of(
          model->devices.begin(), model->devices.end(),
          [&](const DeviceInfo& one) { return one.fingerprint() == winner.device.fingerprint(); });
      if (!known) model->devices.push_back(winner.device);
    }
    model->problems.push_back(std::move(problem));
  }
  return models;
}

nlohmann::json winner_json(const Hardware& hardware, const HardwareWinners& problem,
                           std::size_t i) {
  auto object = result_json(problem.winners[i]);
  object["card"] = nlohmann::json::array();
  for (const auto& device : hardware.devices) object["card"].push_back(device.fingerprint());
  object["best_of_card"] = nullptr;  // unknown
  if (i > 0 && problem.comparisons[i - 1].sure()) object["best_of_card"] = false;
  if (i == 0 && problem.sure()) object["best_of_card"] = true;
  return object;
}

std::string winner_rows(const StoredWinner& stored) {
  constexpr std::size_t indent = 4;
  const Winner& winner = stored.winner;
  const Work work = work_of(known_operations(), stored.problem);
  const double us = winner.measurement.median_us;
  const auto ties = format_count(winner.ties.size(), "tie");
  std::string text =
      format_row(stored.device_id,
                 fmt::format("{}, {}, {} of the roofline, {}{}", format_time(winner.measurement),
                             format_rate(work, us), format_share(winner.roofline),
                             speedup_text(winner), winner.ties.empty() ? "" : ", " + ties),
                 indent);
  text += format_row("", shown(stored.problem, stored.device, winner.config), indent);
  if (const auto kernels = kernels_text(winner.kernels); !kernels.empty()) {
    text += format_row("", kernels, indent);
  }
  if (const auto same = determinism_of(winner.verdict)) {
    text += format_row("", to_text(*same), indent);
  }
  return text +
         format_row("", stored.provenance.driver + ", " + stored.provenance.started_utc, indent);
}

/// Returns plots of the search that found a winner, if its trials are recorded, and of its share of
/// the roofline.
std::string winner_plots(const TunedDb& db, const StoredWinner& stored) {
  constexpr std::size_t most_columns = 80, bar_columns = 40;
  std::string text;
  if (stored.session > 0)
    text = plot_text(db.trials(stored.session), stored.problem.key(),
                     std::min(most_columns, report_columns()));
  if (stored.winner.roofline > 0)
    text += format_row(
        "roofline",
        bar_text(stored.winner.roofline, bar_columns) + " " + format_share(stored.winner.roofline),
        4);
  return text;
}

/// Returns the times of other libraries for a problem.
std::string peer_rows(const std::vector<Peer>& peers, const Problem& problem) {
  std::string text;
  for (const auto& peer : peers) {
    if (peer.problem != problem || !(peer.us > 0)) continue;
    text += format_row(
        "peer", fmt::format("{}, {}, {}", format_time(peer.us), peer.solution, peer.library), 4);
  }
  return text;
}

std::string hardware_text(const Hardware& hardware, const std::vector<Peer>& peers,
                          const TunedDb* plotted) {
  std::string text = one_line(hardware.devices.front().name) + "\n";
  for (const auto& problem : hardware.problems) {
    const StoredWinner& first = problem.winners.front();
    text +=
        fmt::format("  {}{}\n", one_line(first.problem.key()), first.winner.cold ? "" : " (warm)");
    for (const auto& stored : problem.winners) {
      text += winner_rows(stored);
      if (plotted != nullptr) text += winner_plots(*plotted, stored);
    }
    for (std::size_t i = 0; i < problem.comparisons.size(); ++i) {
      text += comparison_row(first.device_id, problem.winners[i + 1].device_id,
                             problem.comparisons[i], 4);
    }
    text += peer_rows(peers, first.problem);
  }
  return text;
}

int show(const ShowOptions& options) {
  if (options.plot && options.json) throw CommandError(exit_usage, "--plot: not with --json");
  if (options.plot && !utf8_locale())
    throw CommandError(exit_usage, "--plot: needs a locale with UTF-8, for example LC_ALL=C.UTF-8");
  const ResultFilter filter = read_filter(options.results);
  const TunedDb db = open_database(options.results.db, TunedDb::Mode::read_only);
  check_device_is_known(db, filter);
  auto all = db.winners_by_hardware();
  StalenessJudge judge(known_operations());
  std::erase_if(all, [&](const HardwareWinners& problem) {
    return std::none_of(problem.winners.begin(), problem.winners.end(),
                        [&](const StoredWinner& winner) { return filter.matches(winner, judge); });
  });
  nlohmann::json list = nlohmann::json::array();
  std::string text;
  const auto peers = db.contents().peers;
  for (const auto& hardware : by_hardware(std::move(all), HardwareGroups(db.devices()))) {
    text += hardware_text(hardware, peers, options.plot ? &db : nullptr);
    for (const auto& problem : hardware.problems) {
      for (std::size_t i = 0; i < problem.winners.size(); ++i) {
        list.push_back(winner_json(hardware, problem, i));
      }
    }
  }
  const auto counts = db.counts();
  text +=
      fmt::format("{} shown; {} holds {} and {} of {}\n", format_count(list.size(), "winner"),
                  db.file().string(), format_count(counts.winners, "winner"),
                  format_count(counts.trials, "trial"), format_count(counts.sessions, "session"));
  if (options.json) {
    print_json(list);
  } else {
    print_text(text);
  }
  return end_of_reading(db, exit_done);
}

}  // namespace

void add_show_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("show", "Show stored winners by hardware");
  auto options = std::make_shared<ShowOptions>();
  add_result_options(*command, options->results);
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--plot", options->plot,
                    "Also draw the search and the share of the roofline, in UTF-8");
  command->callback([&action, options] { action = [options] { return show(*options); }; });
}

}  // namespace greta::tuner::cli
