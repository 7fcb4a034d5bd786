#include "db/distance_evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "db/regret.hpp"

namespace greta::db {
namespace {

constexpr std::size_t voters = 3;

std::vector<std::int64_t> extents_of(const Problem& problem) {
  std::vector<std::int64_t> extents;
  for (const auto& [name, extent] : problem.dims) extents.push_back(extent);
  return extents;
}

/// The other shapes' winners that serve a problem as they are carried over.
std::vector<const StoredWinner*> neighbours(const StoredWinner& result,
                                            const std::vector<StoredWinner>& winners) {
  std::vector<const StoredWinner*> valid;
  for (const auto& other : winners) {
    const double distance = shape_distance(result.problem, other.problem);
    if (distance > 0 && std::isfinite(distance) && other.winner.cold == result.winner.cold &&
        other.device.fingerprint() == result.device.fingerprint() && serves(other, result)) {
      valid.push_back(&other);
    }
  }
  return valid;
}

void sort_by(const ShapeDistance& distance, const Problem& wanted,
             std::vector<const StoredWinner*>& winners) {
  std::map<const StoredWinner*, double> distances;
  for (const auto* winner : winners) {
    distances[winner] = distance.between(wanted, extents_of(winner->problem));
  }
  std::sort(winners.begin(), winners.end(), [&](const auto* a, const auto* b) {
    if (distances[a] != distances[b]) return distances[a] < distances[b];
    return a->problem.dims < b->problem.dims;
  });
}

/// Of the nearest three the one whose configuration most of them have; of as many the nearest.
const StoredWinner* elect(const std::vector<const StoredWinner*>& nearest) {
  const auto count = std::min(voters, nearest.size());
  const StoredWinner* elected = nullptr;
  std::ptrdiff_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto votes = std::count_if(
        nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(count),
        [&](const auto* one) { return one->winner.config == nearest[i]->winner.config; });
    if (votes <= most) continue;
    most = votes;
    elected = nearest[i];
  }
  return elected;
}

std::vector<ChoiceScore> new_scores() {
  std::vector<ChoiceScore> scores;
  for (const auto& distance : shape_distances()) {
    scores.push_back({std::string(distance.name), std::string(distance.summary), {}, {}});
  }
  const std::string first(shape_distances().front().name);
  scores.push_back({"within_1", first + " up to 1, else the default", {}, {}});
  scores.push_back({"votes_3", "the most frequent of the three nearest by " + first, {}, {}});
  scores.push_back(
      {"copied", first + ", a default there is copied and not this problem's", {}, {}});
  scores.push_back({"default", "the operation's default", {}, {}});
  return scores;
}

/// What a neighbour costs, asked once for each configuration.
class Costs {
 public:
  Costs(const StoredWinner& result, const ChoiceCost& cost) : result_(result), cost_(cost) {}

  std::optional<double> of(const StoredWinner& neighbour) {
    const auto [found, is_new] =
        known_.try_emplace({neighbour.winner.is_default, neighbour.winner.config});
    if (is_new) found->second = cost_(result_, neighbour);
    return found->second;
  }
  /// Of its configuration as it is, if that is valid.
  std::optional<double> of_copy(StoredWinner neighbour) {
    neighbour.winner.is_default = false;
    return serves(neighbour, result_) ? of(neighbour) : std::nullopt;
  }
  std::optional<double> of_default() const {
    return result_.winner.is_default ? 1 : result_.winner.speedup;
  }

 private:
  const StoredWinner& result_;
  const ChoiceCost& cost_;
  std::map<std::pair<bool, Config>, std::optional<double>> known_;
};

/// What each way costs for one problem, in the order of new_scores().
std::vector<std::optional<double>> costs_of(const StoredWinner& result,
                                            std::vector<const StoredWinner*> others,
                                            const ChoiceCost& cost) {
  Costs known(result, cost);
  std::vector<std::optional<double>> costs;
  for (const auto& distance : shape_distances()) {
    sort_by(distance, result.problem, others);
    costs.push_back(known.of(*others.front()));
  }
  sort_by(shape_distances().front(), result.problem, others);
  const StoredWinner& nearest = *others.front();
  const bool near = shape_distance(result.problem, nearest.problem) <= most_shape_distance;
  costs.push_back(near ? costs.front() : known.of_default());
  costs.push_back(known.of(*elect(others)));
  costs.push_back(known.of_copy(nearest));
  costs.push_back(known.of_default());
  for (auto& one : costs) {
    if (one && !std::isfinite(*one)) one.reset();
  }
  return costs;
}

}  // namespace

ChoiceComparison compare_choices(const std::vector<StoredWinner>& results,
                                 const std::vector<StoredWinner>& winners, const ChoiceCost& cost) {
  ChoiceComparison comparison{0, new_scores()};
  for (const auto& result : results) {
    auto others = neighbours(result, winners);
    if (others.empty()) continue;
    ++comparison.problems;
    const auto costs = costs_of(result, std::move(others), cost);
    const bool all = std::all_of(costs.begin(), costs.end(), [](const auto& c) { return c; });
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (costs[i]) comparison.scores[i].regrets.push_back(*costs[i]);
      if (all) comparison.scores[i].shared.push_back(*costs[i]);
    }
  }
  for (auto& score : comparison.scores) {
    std::sort(score.regrets.begin(), score.regrets.end());
    std::sort(score.shared.begin(), score.shared.end());
  }
  return comparison;
}

}  // namespace greta::db
