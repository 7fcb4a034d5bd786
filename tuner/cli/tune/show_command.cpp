#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "db/cards.hpp"
#include "db/json.hpp"
#include "kernels/catalog.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tuning.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/report.hpp"

namespace greta {
namespace {

struct ShowOptions {
  std::filesystem::path db = default_database();
  std::string op;
  std::string device;
  bool json = false;
};

/// A card and what is known of it: for each problem, the winner through each API.
struct Card {
  std::vector<DeviceInfo> devices;
  std::vector<CardWinners> problems;
};

std::vector<Card> by_card(std::vector<CardWinners> all) {
  std::vector<Card> cards;
  for (auto& problem : all) {
    const DeviceInfo& device = problem.winners.front().device;
    auto card = std::find_if(cards.begin(), cards.end(), [&](const Card& one) {
      return of_one_card(one.devices.front(), device);
    });
    if (card == cards.end()) card = cards.insert(cards.end(), Card{});
    for (const auto& winner : problem.winners) {
      const bool known = std::any_of(
          card->devices.begin(), card->devices.end(),
          [&](const DeviceInfo& one) { return one.fingerprint() == winner.device.fingerprint(); });
      if (!known) card->devices.push_back(winner.device);
    }
    card->problems.push_back(std::move(problem));
  }
  return cards;
}

nlohmann::json winner_json(const Card& card, const CardWinners& problem, std::size_t i) {
  const StoredWinner& stored = problem.winners[i];
  auto winner = to_json(stored.winner);
  winner["config_text"] = stored.winner.config.text();
  nlohmann::json fingerprints = nlohmann::json::array();
  for (const auto& device : card.devices) fingerprints.push_back(device.fingerprint());
  nlohmann::json best = nullptr;  // can't tell
  if (i > 0 && problem.comparisons[i - 1].sure()) best = false;
  if (i == 0 && problem.sure()) best = true;
  return {{"problem", stored.problem.key()},
          {"device", stored.device.name},
          {"device_id", stored.device_id},
          {"device_fingerprint", stored.device.fingerprint()},
          {"card", fingerprints},
          {"best_of_card", best},
          {"driver", stored.provenance.driver},
          {"compiler", stored.provenance.compiler},
          {"greta_version", stored.provenance.greta_version},
          {"date", stored.provenance.started_utc},
          {"winner", winner}};
}

std::string winner_rows(const StoredWinner& stored) {
  constexpr std::size_t indent = 4;
  const Winner& winner = stored.winner;
  const auto* kernel_template = find_template(stored.problem.op);
  const Work work = kernel_template != nullptr ? kernel_template->work(stored.problem) : Work{};
  const double us = winner.measurement.median_us;
  const auto ties = format_count(winner.ties.size(), "tie");
  std::string text =
      format_row(stored.device_id,
                 fmt::format("{}, {}, {} of the roofline, {:.2f}× the default ({:.2f} to {:.2f}){}",
                             format_time(us), format_rate(work, us), format_share(winner.roofline),
                             winner.speedup, winner.speedup_low, winner.speedup_high,
                             winner.ties.empty() ? "" : ", " + ties),
                 indent);
  text += format_row("", winner.config.text(), indent);
  if (const auto kernels = kernels_text(winner.kernels); !kernels.empty()) {
    text += format_row("", kernels, indent);
  }
  return text +
         format_row("", stored.provenance.driver + ", " + stored.provenance.started_utc, indent);
}

std::string card_text(const Card& card) {
  std::string text = card.devices.front().name + "\n";
  for (const auto& problem : card.problems) {
    const StoredWinner& first = problem.winners.front();
    text += fmt::format("  {}{}\n", first.problem.key(), first.winner.cold ? "" : " (warm)");
    for (const auto& stored : problem.winners) text += winner_rows(stored);
    for (std::size_t i = 0; i < problem.comparisons.size(); ++i) {
      text += comparison_row(first.device_id, problem.winners[i + 1].device_id,
                             problem.comparisons[i], 4);
    }
  }
  return text;
}

bool on_device(const CardWinners& problem, const std::string& device) {
  return std::any_of(problem.winners.begin(), problem.winners.end(), [&](const auto& stored) {
    return device.empty() || device == stored.device_id ||
           stored.device.name.find(device) != std::string::npos;
  });
}

/// Leaves those of the device that is asked for, which must be there.
void filter_by_device(std::vector<CardWinners>& all, const std::string& device) {
  std::set<std::string> names;
  for (const auto& problem : all) {
    for (const auto& stored : problem.winners) {
      names.insert(fmt::format("{} {}", stored.device_id, stored.device.name));
    }
  }
  std::erase_if(all, [&](const CardWinners& problem) { return !on_device(problem, device); });
  if (!all.empty() || device.empty()) return;
  throw CommandError(exit_usage,
                     fmt::format("--device {}: {}", device,
                                 names.empty() ? "no winner of any device is known"
                                               : fmt::format("must be one of, or a part of, {}",
                                                             fmt::join(names, ", "))));
}

int show(const ShowOptions& options) {
  if (!options.op.empty() && find_template(options.op) == nullptr) {
    std::string names;
    for (const auto* entry : catalog()) names += (names.empty() ? "" : ", ") + entry->name;
    throw CommandError(exit_usage, fmt::format("--op {}: must be one of {}", options.op, names));
  }
  const TunedDb db = open_database(options.db, TunedDb::Mode::read_only);
  auto all = db.winners_by_card();
  filter_by_device(all, options.device);
  std::erase_if(all, [&](const CardWinners& problem) {
    return !options.op.empty() && problem.winners.front().problem.op != options.op;
  });
  nlohmann::json list = nlohmann::json::array();
  std::string text;
  for (const auto& card : by_card(std::move(all))) {
    text += card_text(card);
    for (const auto& problem : card.problems) {
      for (std::size_t i = 0; i < problem.winners.size(); ++i) {
        list.push_back(winner_json(card, problem, i));
      }
    }
  }
  const auto counts = db.counts();
  const auto count = [](std::int64_t number, std::string_view noun) {
    return format_count(static_cast<std::size_t>(number), noun);
  };
  text += fmt::format("{} shown; {} holds {} and {} of {}\n", format_count(list.size(), "winner"),
                      db.file().string(), count(counts.winners, "winner"),
                      count(counts.trials, "trial"), count(counts.sessions, "session"));
  fmt::print("{}", options.json ? list.dump(2) + "\n" : text);
  return exit_done;
}

}  // namespace

void add_show_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("show", "Show the winners that are known, by card");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("--db", options->db, "Database of trials and winners")->capture_default_str();
  command->add_option("--op", options->op, "Only this operation");
  command->add_option("--device", options->device, "Only cards with this id or part of a name");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([&action, options] { action = [options] { return show(*options); }; });
}

}  // namespace greta
