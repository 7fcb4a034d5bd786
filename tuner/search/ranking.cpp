#include "tuner/search/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_map>

#include "kernels/prior/prior.hpp"

namespace greta::tuner {
namespace {

constexpr std::uint64_t searched_in_full = 2000;
constexpr std::size_t drawn = 1500;   ///< random configurations
constexpr std::size_t descents = 10;  ///< from the best of them
constexpr std::size_t most_steps = 12;

/// Collects configurations with their predicted costs, each once.
class Ranked {
 public:
  Ranked(const Space& space, const SearchProblem::Prior& prior) : space_(space), prior_(prior) {}

  /// Returns the cost; infinity for configurations that are not valid or have no prediction.
  double add(const Choice& choice) {
    const auto index = space_.index(choice);
    if (!index) return std::numeric_limits<double>::infinity();
    const auto [place, is_new] = costs_.try_emplace(*index, 0);
    if (!is_new) return place->second;
    place->second = prior_(choice);
    if (std::isfinite(place->second)) list_.emplace_back(place->second, choice);
    return place->second;
  }
  std::vector<std::pair<double, Choice>>& sorted() {
    std::sort(list_.begin(), list_.end());
    return list_;
  }

 private:
  const Space& space_;
  const SearchProblem::Prior& prior_;
  std::vector<std::pair<double, Choice>> list_;
  std::unordered_map<std::uint64_t, double> costs_;  ///< by index of the configuration
};

/// Steps to the best neighbour while that is better.
void descend(Ranked& ranked, const Space& space, double cost, Choice choice) {
  for (std::size_t step = 0; step < most_steps; ++step) {
    bool better = false;
    for (const Choice& next : space.neighbours(choice, false)) {
      const double of_next = ranked.add(next);
      if (of_next >= cost) continue;
      cost = of_next;
      choice = next;
      better = true;
    }
    if (!better) return;
  }
}

}  // namespace

std::vector<std::pair<double, Choice>> rank_by_prior(const Space& space,
                                                     const SearchProblem::Prior& prior,
                                                     std::size_t count, std::mt19937_64& random) {
  Ranked ranked(space, prior);
  if (space.count() <= searched_in_full) {
    for (std::uint64_t index = 0; index < space.count(); ++index) ranked.add(space.choice(index));
  } else {
    const std::size_t variants = space.alternatives().size();
    for (std::size_t i = 0; i < drawn; ++i) {
      const auto variant = static_cast<std::uint32_t>(i % variants);
      if (space.count_at(variant) > 0) ranked.add(space.sample_at(variant, random));
    }
    const auto& sorted = ranked.sorted();
    const std::vector<std::pair<double, Choice>> best(
        sorted.begin(),
        sorted.begin() + static_cast<std::ptrdiff_t>(std::min(descents, sorted.size())));
    for (const auto& [cost, choice] : best) descend(ranked, space, cost, choice);
  }
  auto& list = ranked.sorted();
  list.resize(std::min(list.size(), count));
  return std::move(list);
}

bool has_prior(const Operation& operation) {
  return std::any_of(operation.variants.begin(), operation.variants.end(),
                     [](const Variant& variant) { return bool(variant.work); });
}

SearchProblem::Prior static_prior(const Operation& operation, const Problem& problem,
                                  const DeviceInfo& device, const Space& space) {
  if (!has_prior(operation)) return nullptr;
  const auto prior = std::make_shared<const StaticPrior>(operation, problem, device);
  return [prior, &space](const Choice& choice) {
    return prior->cost(space.config(choice)).value_or(std::numeric_limits<double>::infinity());
  };
}

}  // namespace greta::tuner
