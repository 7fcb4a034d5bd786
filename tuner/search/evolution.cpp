#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/model/random.hpp"
#include "tuner/search/classic.hpp"
#include "tuner/search/factories.hpp"

namespace greta::tuner {
namespace {

/// Differential evolution (best/1/bin) on the places of values in ascending order: a trial vector
/// adds the difference of two members to the best, takes some values from its target, and replaces
/// the target if it is better. Source: Storn, Price, "Differential Evolution", J. Global
/// Optimization 1997.
class Evolution : public Classic {
 public:
  explicit Evolution(const SearchProblem& problem) : Classic(problem), order_(*problem.space) {}

 private:
  std::optional<Choice> propose(std::uint64_t first) override {
    if (first < count_option("population") || members_.size() < 4) return random_choice();
    for (int attempt = 0; attempt < most_vectors; ++attempt) {
      const std::size_t target = next_target_++ % members_.size();
      const auto trial = trial_vector(members_[target].choice);
      if (!trial || !untried(*trial)) continue;
      targets_[*trial] = target;
      return trial;
    }
    return std::nullopt;
  }

  void learn(const Result& result) override {
    const auto target = targets_.extract(result.choice);
    if (std::isinf(result.cost)) return;
    if (target.empty()) {
      if (members_.size() < count_option("population")) members_.push_back(result);
      return;
    }
    Result& member = members_[target.mapped()];
    if (result.cost <= member.cost) member = result;
  }

  /// Returns nothing if the best is of another variant: its difference has no meaning there.
  std::optional<Choice> trial_vector(const Choice& target) {
    const auto best =
        std::min_element(members_.begin(), members_.end(),
                         [](const Result& a, const Result& b) { return a.cost < b.cost; });
    const Choice& a = members_[below(members_.size())].choice;
    const Choice& b = members_[below(members_.size())].choice;
    const std::uint32_t variant = best->choice.variant;
    if (a.variant != variant || b.variant != variant || target.variant != variant) {
      return random_move(best->choice);
    }
    Choice trial = target;
    const std::size_t certain = trial.values.empty() ? 0 : below(trial.values.size());
    for (std::size_t i = 0; i < trial.values.size(); ++i) {
      if (i != certain && uniform(random()) >= option("crossover")) continue;
      const auto place = [&](const Choice& choice) {
        return static_cast<double>(order_.place(variant, i, choice.values[i]));
      };
      const double moved =
          std::round(place(best->choice) + option("weight") * (place(a) - place(b)));
      const auto last = static_cast<double>(order_.count(variant, i) - 1);
      trial.values[i] =
          order_.value(variant, i, static_cast<std::size_t>(std::clamp(moved, 0.0, last)));
    }
    return trial;
  }

  static constexpr int most_vectors = 200;
  ValueOrder order_;
  std::vector<Result> members_;
  std::map<Choice, std::size_t> targets_;  ///< of vectors without a result yet
  std::size_t next_target_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> create_evolution(const SearchProblem& problem) {
  return std::make_unique<Evolution>(problem);
}

}  // namespace greta::tuner
