#pragma once

#include <map>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/search/enumeration.hpp"
#include "tuner/search/features.hpp"
#include "tuner/search/random_forest.hpp"

namespace greta::tuner {

/// What searches by a model share. After a small initial design of configurations that are far from
/// each other, they try the configuration with the greatest expected improvement among the
/// neighbours of the best trials, those with several changes, and random ones. Failures are learned
/// from: a configuration near failed ones is less likely to be tried. A prior chooses the initial
/// design, and the model is fitted to what it does not explain. Sources: Jones, Schonlau,
/// Welch, "Efficient Global Optimization of Expensive Black-Box Functions", 1998; candidates as in
/// SMAC, Hutter, Hoos, Leyton-Brown, LION 2011.
class ModelSearch : public Strategy {
 public:
  explicit ModelSearch(const SearchProblem& problem);

  std::optional<Choice> ask() final;
  void tell(const Choice& choice, const Trial& trial) final;

 protected:
  /// What a model is fitted to: points and the logarithms of their times.
  struct Lessons {
    std::vector<std::vector<float>> points;
    std::vector<double> values;  ///< less what is expected by the prior
    std::size_t measured = 0;    ///< the rest are predictions for trials without a result yet
  };
  /// A configuration that may be tried.
  struct Candidate {
    Choice choice;
    std::vector<float> point;
    double expected = 0;  ///< by the prior, to be added to the model's prediction
  };
  struct Pick {
    std::size_t place = 0;  ///< among the candidates
    double mean = 0;        ///< predicted value, with what is expected
  };

  /// Fits the model and returns the candidate with the greatest chance times expected improvement
  /// on `best`. There is at least one lesson and one candidate.
  virtual Pick pick(const Lessons& lessons, const std::vector<Candidate>& candidates,
                    double best) = 0;

  /// Returns the estimated probability that a configuration succeeds, 0…1.
  double chance(const std::vector<float>& point) const;
  const Features& features() const { return features_; }
  std::mt19937_64& random() { return random_; }
  std::size_t option(std::string_view name) const;

 private:
  struct Observation {
    Choice choice;
    std::vector<float> point;
    double predicted = 0;         ///< logarithm of the prior's prediction; infinite: none
    double cost = 0;              ///< logarithm of the time; infinite after a failure
    std::optional<double> value;  ///< for the model: the cost, or its prediction after a failure
  };

  double predicted(const Choice& choice);
  void fit_expectation(const std::vector<const Observation*>& known);
  double expected(double predicted) const;
  std::optional<Choice> next_of_design();
  std::optional<Choice> next_of_ranking();
  std::optional<Choice> most_promising();
  std::vector<const Observation*> informative() const;
  Lessons lessons(const std::vector<const Observation*>& known);
  Candidate candidate(Choice choice);
  std::vector<Candidate> candidates(const std::vector<const Observation*>& known);
  Choice changed(Choice choice);
  void learn_failures();

  const Space& space_;
  SearchProblem::Prior prior_;
  StrategyOptions options_;
  Untried untried_;
  std::mt19937_64 random_;
  Features features_;
  std::vector<std::uint32_t> variants_;  ///< variants with at least one valid configuration
  /// The best configurations by the prior; empty without one, and before the first is needed.
  std::vector<std::pair<double, Choice>> ranking_;
  std::unordered_map<std::uint64_t, double> predictions_;  ///< by index of the configuration
  /// The line that expected times follow over predicted ones, both logarithms, and its end.
  double base_ = 0, slope_ = 0, most_expected_ = 0;
  std::vector<std::vector<float>> designed_;
  std::size_t design_left_ = 0;
  std::vector<Observation> observed_;
  bool succeeded_ = false;
  std::optional<RandomForest> successes_;  ///< of 0 (failed) and 1; nothing before a failure
  std::size_t successes_fitted_ = 0;       ///< observations when it was fitted
  bool failed_since_ = false;
  std::map<Choice, double> believed_;  ///< predictions for configurations without a result yet
};

}  // namespace greta::tuner
