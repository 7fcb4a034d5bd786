#include <algorithm>
#include <cmath>

#include "tuner/search/factories.hpp"
#include "tuner/search/gaussian_process.hpp"
#include "tuner/search/model_search.hpp"

namespace greta::tuner {
namespace {

// Chosen on the development spaces of docs/search.md.
constexpr double standard_scale = 1.0 / 6;  ///< of a column: most likely before the first trial
constexpr double scale_spread = 1;          ///< standard deviation of the logarithm of scales
constexpr double order_share = 0.6;
constexpr double noise_share = 1e-3;
constexpr std::size_t most_fitted = 96;  ///< trials that scales are fitted to
constexpr double fit_effort =
    1e5;  ///< multiplications that a call takes for fits if they are small

/// Model-based search with a Gaussian process that learns how much each parameter matters.
class Auto : public ModelSearch {
 public:
  explicit Auto(const SearchProblem& problem) : ModelSearch(problem) {
    relevance_.scale.assign(features().count(), standard_scale);
    relevance_.order_share = order_share;
    relevance_.noise = noise_share;
  }

 private:
  Pick pick(const Lessons& lessons, const std::vector<Candidate>& candidates,
            double best) override {
    fit_scales(lessons);
    const GaussianProcess model(features(), relevance_, lessons.points, lessons.values);
    // The deviation decreases with every observation, and no chance is above 1. So the improvement
    // that is expected from the nearest observation alone is an upper bound, and most candidates
    // need no exact guess.
    struct Bound {
      double improvement = 0;
      std::size_t place = 0;
      std::vector<double> likeness;
    };
    std::vector<Bound> bounds;
    bounds.reserve(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      auto likeness = model.likeness(candidates[i].point);
      const double improvement =
          expected_improvement(model.bound(likeness), best - candidates[i].expected);
      bounds.push_back({improvement, i, std::move(likeness)});
    }
    std::sort(bounds.begin(), bounds.end(), [](const Bound& a, const Bound& b) {
      return std::pair(-a.improvement, a.place) < std::pair(-b.improvement, b.place);
    });
    double greatest = -1;
    Pick chosen;
    for (const Bound& bound : bounds) {
      if (bound.improvement <= greatest) break;
      const auto guess = model.guess(bound.likeness);
      const Candidate& candidate = candidates[bound.place];
      const double improvement =
          chance(candidate.point) * expected_improvement(guess, best - candidate.expected);
      if (improvement <= greatest) continue;
      greatest = improvement;
      chosen = {bound.place, guess.mean + candidate.expected};
    }
    return chosen;
  }

  /// Returns the logarithm of the posterior probability of scales: log-normal around the standard.
  double posterior(const Relevance& relevance, const Lessons& lessons) const {
    const GaussianProcess model(features(), relevance, lessons.points, lessons.values);
    double sum = model.log_likelihood();
    for (const double scale : relevance.scale) {
      const double off = std::log(scale / standard_scale) / scale_spread;
      sum -= off * off / 2;
    }
    return sum;
  }

  /// Halves or doubles the scale of a column if that makes it more likely: one step of a coordinate
  /// ascent that goes on at each call, or several steps while there are few trials. With many
  /// trials, every second call has no step.
  void fit_scales(const Lessons& all) {
    const std::size_t columns = features().count();
    const std::size_t count = std::min(most_fitted, all.measured);
    if (columns == 0 || (count == most_fitted && ++calls_ % 2 == 0)) return;
    const auto end = static_cast<std::ptrdiff_t>(count);
    const Lessons lessons{{all.points.begin(), all.points.begin() + end},
                          {all.values.begin(), all.values.begin() + end},
                          count};
    const double effort = std::pow(static_cast<double>(count), 3) / 3 + 1000;
    const auto steps = static_cast<std::size_t>(
        std::clamp(fit_effort / effort, 1.0, 2 * static_cast<double>(columns)));
    double current = posterior(relevance_, lessons);
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t column = next_column_++ % columns;
      for (const double factor : {0.5, 2.0}) {
        Relevance changed = relevance_;
        changed.scale[column] *= factor;
        const double now = posterior(changed, lessons);
        if (now <= current) continue;
        current = now;
        relevance_ = std::move(changed);
        break;
      }
    }
  }

  Relevance relevance_;
  std::size_t next_column_ = 0;
  std::size_t calls_ = 0;  ///< with many trials
};

}  // namespace

std::unique_ptr<Strategy> create_auto(const SearchProblem& problem) {
  return std::make_unique<Auto>(problem);
}

}  // namespace greta::tuner
