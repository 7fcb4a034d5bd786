#include <algorithm>
#include <cmath>

#include "kernels/model/random.hpp"
#include "tuner/search/classic.hpp"
#include "tuner/search/factories.hpp"

namespace greta::tuner {
namespace {

/// A steady-state genetic algorithm: each child takes every value from one of two parents, which
/// tournaments among the best results select, and mutates. There are no generations, so that any
/// number of children can be tried at once. Source: Whitley, "The GENITOR Algorithm", ICGA 1989.
class Genetic : public Classic {
 public:
  using Classic::Classic;

 private:
  std::optional<Choice> propose(std::uint64_t first) override {
    if (first < count_option("population") || population_.size() < 2) return random_choice();
    for (int attempt = 0; attempt < most_children; ++attempt) {
      const Choice child = mutated(crossed(parent(), parent()));
      if (untried(child)) return child;
    }
    return std::nullopt;
  }

  void learn(const Result& result) override {
    if (std::isinf(result.cost)) return;
    const auto place =
        std::upper_bound(population_.begin(), population_.end(), result,
                         [](const Result& a, const Result& b) { return a.cost < b.cost; });
    population_.insert(place, result);
    if (population_.size() > count_option("population")) population_.pop_back();
  }

  const Choice& parent() {
    constexpr int contestants = 3;
    std::size_t best = below(population_.size());
    for (int i = 1; i < contestants; ++i) best = std::min(best, below(population_.size()));
    return population_[best].choice;
  }

  Choice crossed(const Choice& first, const Choice& second) {
    if (first.variant != second.variant) return first;
    Choice child = first;
    for (std::size_t i = 0; i < child.values.size(); ++i) {
      if (below(2) == 1) child.values[i] = second.values[i];
    }
    return child;
  }

  Choice mutated(Choice child) {
    const auto& parameters = space().alternatives()[child.variant].parameters;
    const double chance =
        option("mutations") / std::max<double>(1, static_cast<double>(parameters.size()));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (uniform(random()) >= chance) continue;
      child.values[i] = static_cast<std::uint16_t>(below(parameters[i].values.size()));
    }
    return child;
  }

  static constexpr int most_children = 100;
  std::vector<Result> population_;  ///< the best results, best first
};

}  // namespace

std::unique_ptr<Strategy> create_genetic(const SearchProblem& problem) {
  return std::make_unique<Genetic>(problem);
}

}  // namespace greta::tuner
