#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "kernels/model/random.hpp"
#include "tuner/search/enumeration.hpp"
#include "tuner/search/factories.hpp"
#include "tuner/search/observations.hpp"
#include "tuner/search/surrogate.hpp"

namespace greta::tuner {
namespace {

// Chosen on recorded search spaces (tests/data/replay and two of a GEMM). Halving or doubling any
// of them has little effect.
constexpr std::size_t design_size = 10;       ///< number of initial random trials
constexpr std::size_t least_per_variant = 4;  ///< minimum number of them per variant
constexpr std::size_t climbers = 5;           ///< number of best trials whose neighbours are judged
constexpr std::size_t strangers = 100;        ///< number of random configurations that are judged
constexpr std::size_t model_best = 64;        ///< number of best trials that the model is fitted to
constexpr std::size_t model_latest = 64;      ///< number of latest trials in addition

constexpr double failed = std::numeric_limits<double>::infinity();

/// Model-based local search. After a small random initial design in every variant, it tries the
/// configuration with the greatest expected improvement among the neighbours of the best trials and
/// some random configurations, which let it leave a local optimum. Sources: Jones, Schonlau, Welch,
/// "Efficient Global Optimization of Expensive Black-Box Functions", 1998; candidates as in SMAC,
/// Hutter, Hoos, Leyton-Brown, LION 2011.
class Local : public Strategy {
 public:
  explicit Local(const SearchProblem& problem)
      : space_(*problem.space), untried_(problem), random_(problem.seed) {
    std::vector<std::string> names;  // one column per parameter name
    for (std::uint32_t variant = 0; variant < space_.alternatives().size(); ++variant) {
      if (space_.count_at(variant) > 0) variants_.push_back(variant);
      columns_.emplace_back();
      for (const Parameter& parameter : space_.alternatives()[variant].parameters) {
        const auto found = std::find(names.begin(), names.end(), parameter.name);
        columns_.back().push_back(static_cast<std::size_t>(found - names.begin()) + 1);
        if (found == names.end()) names.push_back(parameter.name);
      }
    }
    coordinates_ = names.size() + 1;
    if (!variants_.empty()) {
      design_left_ = std::max(design_size, least_per_variant * variants_.size());
    }
  }

  std::optional<Choice> ask() override {
    if (auto seed = untried_.next_seed()) return seed;
    if (design_left_ > 0) {
      if (auto random = next_of_design()) return random;
    }
    if (succeeded_) {
      if (auto promising = most_promising()) return promising;
    }
    return untried_.next_random();
  }

  void tell(const Choice& choice, const Trial& trial) override {
    const auto belief = believed_.extract(choice);
    if (trial.ok()) {
      const double cost = std::log(trial.measurement.median_us);
      observed_.push_back({choice, point(choice), cost, cost});
      succeeded_ = true;
    } else if (!belief.empty()) {
      // A failure says little about the times of neighbours. The model is told its own prediction,
      // so that only its uncertainty here decreases.
      observed_.push_back({choice, point(choice), failed, belief.mapped()});
    }
  }

 private:
  struct Observation {
    Choice choice;
    Surrogate::Point point;
    double cost = 0;    ///< logarithm of the time; infinite after a failure
    double lesson = 0;  ///< value for the model: the cost, or its prediction after a failure
  };

  /// Returns the coordinates of a configuration: its variant, then one column per parameter name.
  Surrogate::Point point(const Choice& choice) const {
    Surrogate::Point coordinates(coordinates_, std::numeric_limits<int>::min());
    coordinates[0] = static_cast<int>(choice.variant);
    const auto& parameters = space_.alternatives()[choice.variant].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      coordinates[columns_[choice.variant][i]] = parameters[i].values[choice.values[i]];
    }
    return coordinates;
  }

  /// Returns a random configuration of the next variant of the initial design. The number of draws
  /// is limited, because a tiny variant may be exhausted.
  std::optional<Choice> next_of_design() {
    const std::uint32_t variant = variants_[--design_left_ % variants_.size()];
    for (int draw = 0; draw < 10; ++draw) {
      const Choice choice = space_.sample_at(variant, random_);
      if (auto taken = untried_.take(*space_.index(choice))) return taken;
    }
    return std::nullopt;
  }

  std::optional<Choice> most_promising() {
    const std::vector<const Observation*> known = informative();
    const double best = known.front()->cost;
    const Surrogate surrogate = learn(known);
    double greatest = -1;
    std::optional<Choice> chosen;
    for (const Choice& candidate : candidates(known)) {
      const double improvement = surrogate.expected_improvement(point(candidate), best);
      if (improvement > greatest) {
        greatest = improvement;
        chosen = candidate;
      }
    }
    if (!chosen) return std::nullopt;
    // Until the result is known, the model is given its own prediction, so that configurations
    // requested ahead differ from each other.
    believed_[*chosen] = surrogate.guess(point(*chosen)).mean;
    return untried_.take(*space_.index(*chosen));
  }

  /// Returns the observations that the model is fitted to, best first.
  std::vector<const Observation*> informative() const {
    std::vector<const Observation*> all;
    all.reserve(observed_.size());
    for (const Observation& observation : observed_) all.push_back(&observation);
    keep_best_and_latest(all, model_best, model_latest);
    return all;
  }

  /// Fits the model.
  Surrogate learn(const std::vector<const Observation*>& known) const {
    const double most = median_cost(known);
    std::vector<Surrogate::Point> points;
    std::vector<double> values;
    for (const Observation* observation : known) {
      points.push_back(observation->point);
      values.push_back(std::min(observation->lesson, most));
    }
    for (const auto& [choice, cost] : believed_) {
      points.push_back(point(choice));
      values.push_back(cost);
    }
    return {std::move(points), std::move(values)};
  }

  std::vector<Choice> candidates(const std::vector<const Observation*>& known) {
    std::vector<Choice> found;
    const auto add = [&](Choice choice) {
      if (untried_.has(*space_.index(choice))) found.push_back(std::move(choice));
    };
    for (std::size_t i = 0; i < std::min(climbers, known.size()); ++i) {
      if (known[i]->cost == failed) break;
      for (Choice& near : space_.neighbours(known[i]->choice, false)) add(std::move(near));
    }
    for (std::size_t i = 0; i < strangers; ++i) {
      add(space_.sample_at(variants_[i % variants_.size()], random_));
    }
    return found;
  }

  const Space& space_;
  Untried untried_;
  std::mt19937_64 random_;
  std::vector<std::uint32_t> variants_;  ///< variants with at least one valid configuration
  std::vector<std::vector<std::size_t>> columns_;  ///< [variant][parameter]
  std::size_t coordinates_ = 0;
  std::size_t design_left_ = 0;
  bool succeeded_ = false;
  std::vector<Observation> observed_;
  std::map<Choice, double> believed_;  ///< predictions for configurations without a result yet
};

}  // namespace

std::unique_ptr<Strategy> create_local(const SearchProblem& problem) {
  return std::make_unique<Local>(problem);
}

}  // namespace greta::tuner
