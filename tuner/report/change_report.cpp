#include "tuner/report/change_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tuner/report/format.hpp"
#include "tuner/report/report.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner {
namespace {

constexpr std::array shown_order{Change::lost, Change::worse, Change::better, Change::added,
                                 Change::same};

std::string side_text(const std::optional<StoredWinner>& side) {
  if (!side) return "none";
  const Winner& winner = side->winner;
  if (winner.is_default) return "the default";
  if (!has_ratio(winner)) return winner.config.shown() + ", ratio to the default not known";
  return fmt::format("{}, {:.2f}× the default ({:.2f} to {:.2f})", winner.config.shown(),
                     winner.speedup, winner.speedup_low, winner.speedup_high);
}

}  // namespace

std::string change_text(const std::vector<AnswerChange>& changes) {
  Table table({{"change"},
               {"problem"},
               {"device"},
               {"ratio", Table::Align::right},
               {"old"},
               {"new"},
               {"circumstances"}});
  std::string counts;
  for (const Change shown : shown_order) {
    std::int64_t count = 0;
    for (const AnswerChange& one : changes) {
      if (one.change != shown) continue;
      ++count;
      if (shown == Change::same && one.circumstances.empty()) continue;
      const StoredWinner& either = one.either();
      table.add({std::string(to_string(shown)),
                 either.problem.key() + (either.winner.cold ? "" : " (warm)"),
                 either.device_id + " " + either.device.name,
                 one.ratio > 0 ? fmt::format("{:.2f}", one.ratio) : "", side_text(one.before),
                 side_text(one.after), one.circumstances});
    }
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, to_string(shown));
  }
  return (table.empty() ? "" : table.text()) + counts + "\n";
}

nlohmann::json change_json(const std::vector<AnswerChange>& changes) {
  auto list = nlohmann::json::array();
  for (const AnswerChange& one : changes) {
    const auto side = [](const std::optional<StoredWinner>& winner) {
      return winner ? result_json(*winner) : nlohmann::json();
    };
    list.push_back({{"change", to_string(one.change)},
                    {"problem", one.either().problem.key()},
                    {"device", one.either().device.name},
                    {"device_id", one.either().device_id},
                    {"ratio", one.ratio > 0 ? nlohmann::json(one.ratio) : nlohmann::json()},
                    {"circumstances", one.circumstances},
                    {"old", side(one.before)},
                    {"new", side(one.after)}});
  }
  return list;
}

bool lost_ground(const std::vector<AnswerChange>& changes) {
  return std::any_of(changes.begin(), changes.end(), [](const AnswerChange& one) {
    return one.change == Change::worse || one.change == Change::lost;
  });
}

}  // namespace greta::tuner
