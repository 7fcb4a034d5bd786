#include "tuner/search/model_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "kernels/model/random.hpp"
#include "tuner/search/observations.hpp"
#include "tuner/search/ranking.hpp"

namespace greta::tuner {
namespace {

// Chosen on the development spaces of docs/search.md, where halving or doubling one of them has
// little effect. The number of observations that models and chances use limits the time of ask().
constexpr std::size_t design_per_variant = 4;  ///< trials of the initial design per variant
constexpr std::size_t drawn_for_design = 20;   ///< random ones of which the farthest is tried
constexpr std::size_t ranked = 400;            ///< best ones by the prior that are considered
constexpr std::size_t design_by_prior = 8;     ///< trials of the initial design with a prior
constexpr double for_distance = 0.1;           ///< change of the logarithm of a prediction
constexpr double usual_slope = 0.8;            ///< of measured over predicted logarithms
constexpr double trust = 1;                    ///< in it, as a sum of squared differences
constexpr std::size_t several_changes = 50;  ///< candidates that differ from a good one in several
constexpr std::size_t fitted_best = 64;      ///< best trials that the model is fitted to
constexpr std::size_t fitted_latest = 64;    ///< latest trials in addition
constexpr std::size_t chance_latest = 256;   ///< latest trials that determine chances
constexpr std::size_t chance_trees = 10;
constexpr std::size_t chance_refit = 16;  ///< successes after which chances are estimated again
constexpr double least_chance = 0.01;     ///< so that no configuration is excluded

constexpr double not_measured = std::numeric_limits<double>::infinity();

/// The distance in the initial design and in the model of failures: half for being different, half
/// for the distance in order, summed over columns.
double apart(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] != b[i] ? 0.5F + 0.5F * std::min(1.0F, std::abs(a[i] - b[i])) : 0.0F;
  }
  return static_cast<double>(sum);
}

}  // namespace

ModelSearch::ModelSearch(const SearchProblem& problem)
    : space_(*problem.space),
      options_(problem.options),
      untried_(problem),
      random_(problem.seed),
      features_(space_) {
  for (std::uint32_t variant = 0; variant < space_.alternatives().size(); ++variant) {
    if (space_.count_at(variant) > 0) variants_.push_back(variant);
  }
  if (variants_.empty()) return;
  if (option("prior") != 0) prior_ = problem.prior;
  if (prior_) {
    design_left_ = std::max(option("design"), design_by_prior);
    return;
  }
  const std::size_t per_variant = variants_.size() == 1 ? 0 : design_per_variant;
  design_left_ = std::max(option("design"), per_variant * variants_.size());
}

std::size_t ModelSearch::option(std::string_view name) const {
  const auto found = options_.find(name);
  if (found == options_.end()) throw Error("strategy without its option " + std::string(name));
  return static_cast<std::size_t>(found->second);
}

std::optional<Choice> ModelSearch::ask() {
  if (auto seed = untried_.next_seed()) return seed;
  while (design_left_ > 0 && untried_.any()) {
    if (auto next = prior_ ? next_of_ranking() : next_of_design()) return next;
  }
  if (succeeded_) {
    if (auto promising = most_promising()) return promising;
  }
  return untried_.next_random();
}

void ModelSearch::tell(const Choice& choice, const Trial& trial) {
  const auto belief = believed_.extract(choice);
  Observation observation{choice, features_.of(choice), predicted(choice), not_measured,
                          std::nullopt};
  if (trial.ok()) {
    observation.cost = std::log(trial.measurement.median_us);
    observation.value = observation.cost;
    succeeded_ = true;
  } else {
    // A failure says little about the times of neighbours. The model receives its own prediction,
    // so that only its uncertainty here decreases.
    if (!belief.empty()) observation.value = belief.mapped();
    failed_since_ = true;
  }
  observed_.push_back(std::move(observation));
}

/// Returns the configuration of the next variant that is farthest from the design so far, of some
/// random ones.
std::optional<Choice> ModelSearch::next_of_design() {
  const std::uint32_t variant = variants_[--design_left_ % variants_.size()];
  double greatest = -1;
  std::optional<Choice> chosen;
  for (std::size_t draw = 0; draw < drawn_for_design; ++draw) {
    Choice choice = space_.sample_at(variant, random_);
    if (!untried_.has(space_.index(choice).value())) continue;
    double nearest = not_measured;
    const auto point = features_.of(choice);
    for (const auto& other : designed_) nearest = std::min(nearest, apart(point, other));
    if (nearest <= greatest) continue;
    greatest = nearest;
    chosen = std::move(choice);
  }
  if (!chosen) return std::nullopt;
  designed_.push_back(features_.of(*chosen));
  return untried_.take(space_.index(*chosen).value());
}

/// Returns the configuration that the prior predicts to be fast and that is not near the design so
/// far.
std::optional<Choice> ModelSearch::next_of_ranking() {
  if (ranking_.empty()) ranking_ = rank_by_prior(space_, prior_, ranked, random_);
  --design_left_;
  double least = not_measured;
  const Choice* chosen = nullptr;
  for (const auto& [cost, choice] : ranking_) {
    if (!untried_.has(space_.index(choice).value())) continue;
    double nearest = 3;  // a greater distance is not better
    const auto point = features_.of(choice);
    for (const auto& other : designed_) nearest = std::min(nearest, apart(point, other));
    const double value = std::log(cost) - for_distance * nearest;
    if (value >= least) continue;
    least = value;
    chosen = &choice;
  }
  if (chosen == nullptr) {
    design_left_ = 0;  // all of the ranking was tried
    return std::nullopt;
  }
  designed_.push_back(features_.of(*chosen));
  return untried_.take(space_.index(*chosen).value());
}

/// Returns the logarithm of the prior's prediction; infinity if there is none.
double ModelSearch::predicted(const Choice& choice) {
  if (!prior_) return not_measured;
  const auto index = space_.index(choice);
  if (!index) return not_measured;
  const auto [place, is_new] = predictions_.try_emplace(*index, 0);
  if (is_new) place->second = std::log(prior_(choice));
  return place->second;
}

/// Fits the line of expected times: its slope is drawn to the usual one while there are few trials.
void ModelSearch::fit_expectation(const std::vector<const Observation*>& known) {
  std::vector<std::pair<double, double>> points;  // predicted, measured
  for (const Observation* observation : known) {
    if (observation->cost < not_measured && observation->predicted < not_measured)
      points.emplace_back(observation->predicted, observation->cost);
  }
  base_ = slope_ = 0;
  most_expected_ = median_cost(known);
  if (points.empty()) return;
  double mean_x = 0, mean_y = 0, together = trust * usual_slope, squares = trust;
  for (const auto& [x, y] : points) {
    mean_x += x / static_cast<double>(points.size());
    mean_y += y / static_cast<double>(points.size());
  }
  for (const auto& [x, y] : points) {
    together += (x - mean_x) * (y - mean_y);
    squares += (x - mean_x) * (x - mean_x);
  }
  slope_ = std::clamp(together / squares, 0.0, 1.2);
  base_ = mean_y - slope_ * mean_x;
}

/// Returns what the model's values are relative to: 0 without a prior.
double ModelSearch::expected(double predicted) const {
  if (!prior_) return 0;
  return std::min(predicted < not_measured ? base_ + slope_ * predicted : most_expected_,
                  most_expected_);
}

std::optional<Choice> ModelSearch::most_promising() {
  const auto known = informative();
  fit_expectation(known);
  const auto considered = candidates(known);
  if (considered.empty()) return std::nullopt;
  learn_failures();
  const Pick best = pick(lessons(known), considered, known.front()->cost);
  const Choice& choice = considered[best.place].choice;
  // Until the result is known, the model is given its own prediction, so that configurations
  // requested ahead differ from each other.
  believed_[choice] = best.mean;
  return untried_.take(space_.index(choice).value());
}

/// Returns the observations that the model is fitted to, best first.
std::vector<const ModelSearch::Observation*> ModelSearch::informative() const {
  std::vector<const Observation*> all;
  all.reserve(observed_.size());
  for (const Observation& observation : observed_) {
    if (observation.value) all.push_back(&observation);
  }
  keep_best_and_latest(all, fitted_best, fitted_latest);
  return all;
}

ModelSearch::Lessons ModelSearch::lessons(const std::vector<const Observation*>& known) {
  const double most = median_cost(known);
  Lessons result;
  for (const Observation* observation : known) {
    result.points.push_back(observation->point);
    result.values.push_back(std::min(*observation->value, most) - expected(observation->predicted));
  }
  result.measured = result.values.size();
  for (const auto& [choice, cost] : believed_) {
    result.points.push_back(features_.of(choice));
    result.values.push_back(cost - expected(predicted(choice)));
  }
  return result;
}

Choice ModelSearch::changed(Choice choice) {
  const auto& parameters = space_.alternatives()[choice.variant].parameters;
  if (parameters.empty()) return choice;
  const std::size_t changes = 2 + uniform_below(random_, 2);
  for (std::size_t change = 0; change < changes; ++change) {
    const std::size_t parameter = uniform_below(random_, parameters.size());
    choice.values[parameter] =
        static_cast<std::uint16_t>(uniform_below(random_, parameters[parameter].values.size()));
  }
  return choice;
}

ModelSearch::Candidate ModelSearch::candidate(Choice choice) {
  auto point = features_.of(choice);
  const double relative_to = expected(predicted(choice));
  return {std::move(choice), std::move(point), relative_to};
}

std::vector<ModelSearch::Candidate> ModelSearch::candidates(
    const std::vector<const Observation*>& known) {
  std::vector<Candidate> found;
  std::set<std::uint64_t> seen;
  const auto add = [&](Choice choice) {
    const auto index = space_.index(choice);
    if (!index || !untried_.has(*index) || !seen.insert(*index).second) return;
    found.push_back(candidate(std::move(choice)));
  };
  std::size_t bases = 0;
  const std::size_t climbers = std::min(option("climbers"), known.size());
  while (bases < climbers && known[bases]->cost < not_measured) {
    for (Choice& next : space_.neighbours(known[bases]->choice, false)) add(std::move(next));
    ++bases;
  }
  for (std::size_t i = 0; i < several_changes && bases > 0; ++i) {
    add(changed(known[uniform_below(random_, bases)]->choice));
  }
  std::size_t strangers = option("strangers");
  // Half of them are the next ones of the ranking.
  for (std::size_t place = 0, left = strangers / 2; place < ranking_.size() && left > 0; ++place) {
    const std::size_t before = found.size();
    add(ranking_[place].second);
    left -= found.size() - before;
    strangers -= found.size() - before;
  }
  for (std::size_t i = 0; i < strangers; ++i) {
    add(space_.sample_at(variants_[i % variants_.size()], random_));
  }
  return found;
}

/// Fits the model of failures again if there was one, or after several successes.
void ModelSearch::learn_failures() {
  if (!failed_since_ && !successes_) return;
  if (!failed_since_ && observed_.size() < successes_fitted_ + chance_refit) return;
  RandomForest::Points points;
  std::vector<double> values;
  const std::size_t first = observed_.size() - std::min(observed_.size(), chance_latest);
  for (std::size_t i = first; i < observed_.size(); ++i) {
    points.push_back(observed_[i].point);
    values.push_back(observed_[i].cost < not_measured ? 1 : 0);
  }
  successes_.emplace(RandomForest::Options{.trees = chance_trees, .least_split = 2}, points, values,
                     random_);
  successes_fitted_ = observed_.size();
  failed_since_ = false;
}

double ModelSearch::chance(const std::vector<float>& point) const {
  return successes_ ? std::max(successes_->guess(point).mean, least_chance) : 1;
}

}  // namespace greta::tuner
