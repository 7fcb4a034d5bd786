#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "kernels/model/random.hpp"
#include "tuner/search/create.hpp"
#include "tuner/search/surrogate.hpp"
#include "tuner/search/untried.hpp"

namespace greta::tuner {
namespace {

// Chosen on recorded spaces (tests/data/replay and two of a GEMM); each may be halved or doubled
// with little effect.
constexpr std::size_t design_size = 10;       ///< first trials, shared by the variants …
constexpr std::size_t least_per_variant = 4;  ///< … of which each gets at least these
constexpr std::size_t climbers = 5;           ///< the best trials, whose neighbours are judged
constexpr std::size_t strangers = 100;        ///< configurations from anywhere judged as well
constexpr std::size_t model_best = 64;        ///< trials the surrogate learns from: the best …
constexpr std::size_t model_latest = 64;      ///< … and the latest

constexpr double failed = std::numeric_limits<double>::infinity();

/// Local search with a model: after a small random design in every variant, tries next what
/// promises the greatest expected improvement among the neighbours of the best trials and some
/// configurations from anywhere, which lead it out of a local optimum.
/// Source: Jones, Schonlau, Welch, "Efficient Global Optimization of Expensive Black-Box
/// Functions", 1998; candidates as in SMAC, Hutter, Hoos, Leyton-Brown, LION 2011.
class Local : public Strategy {
 public:
  explicit Local(const SearchProblem& problem)
      : space_(*problem.space), untried_(problem), random_(problem.seed) {
    std::vector<std::string> names;  // a column for each parameter's name
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
      // A failure says little about its neighbours' times. The model keeps its guess, so that it
      // is only surer here and looks elsewhere.
      observed_.push_back({choice, point(choice), failed, belief.mapped()});
    }
  }

 private:
  struct Observation {
    Choice choice;
    Surrogate::Point point;
    double cost = 0;    ///< logarithm of the time; infinite when it failed
    double lesson = 0;  ///< what the model learns: the cost, or its own guess when it failed
  };

  /// Coordinates of a configuration: its variant, then one column for each parameter's name.
  Surrogate::Point point(const Choice& choice) const {
    Surrogate::Point coordinates(coordinates_, std::numeric_limits<int>::min());
    coordinates[0] = static_cast<int>(choice.variant);
    const auto& parameters = space_.alternatives()[choice.variant].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      coordinates[columns_[choice.variant][i]] = parameters[i].values[choice.values[i]];
    }
    return coordinates;
  }

  /// A random one of the variant whose turn it is. A few draws: a tiny variant may be used up.
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
    // Until its result is told, the model takes its own guess for it, which keeps configurations
    // that are asked ahead apart.
    believed_[*chosen] = surrogate.guess(point(*chosen)).mean;
    return untried_.take(*space_.index(*chosen));
  }

  /// What the model learns from, the best first: it costs the cube of their number.
  std::vector<const Observation*> informative() const {
    std::vector<const Observation*> all;
    all.reserve(observed_.size());
    for (const Observation& observation : observed_) all.push_back(&observation);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(std::min(model_best, all.size()));
    const auto cheaper = [](const Observation* a, const Observation* b) {
      return std::pair(a->cost, a) < std::pair(b->cost, b);
    };
    std::partial_sort(all.begin(), middle, all.end(), cheaper);
    // Behind the best, a later address is a later trial.
    const auto end = middle + std::min<std::ptrdiff_t>(model_latest, all.end() - middle);
    std::partial_sort(middle, end, all.end(), std::greater<>());
    all.erase(end, all.end());
    return all;
  }

  /// Costs above the median count as the median: how bad the bad ones are would only blur the
  /// differences among the good.
  Surrogate learn(const std::vector<const Observation*>& known) const {
    std::vector<double> costs;
    for (const Observation* observation : known) {
      if (observation->cost < failed) costs.push_back(observation->cost);
    }
    const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
    std::nth_element(costs.begin(), middle, costs.end());
    std::vector<Surrogate::Point> points;
    std::vector<double> values;
    for (const Observation* observation : known) {
      points.push_back(observation->point);
      values.push_back(std::min(observation->lesson, *middle));
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
  std::vector<std::uint32_t> variants_;            ///< those that have valid configurations
  std::vector<std::vector<std::size_t>> columns_;  ///< of each variant's parameters, in a point
  std::size_t coordinates_ = 0;
  std::size_t design_left_ = 0;
  bool succeeded_ = false;
  std::vector<Observation> observed_;
  std::map<Choice, double> believed_;  ///< asked for, not told yet
};

}  // namespace

std::unique_ptr<Strategy> create_local(const SearchProblem& problem) {
  return std::make_unique<Local>(problem);
}

}  // namespace greta::tuner
