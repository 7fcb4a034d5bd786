#pragma once

#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tuner/search/enumeration.hpp"

namespace greta::tuner {

/// What the classic heuristics share: results by configuration, random configurations and moves.
/// A derived class proposes configurations, possibly ones that were tried before, whose costs are
/// known and take no trial.
class Classic : public Strategy {
 public:
  explicit Classic(const SearchProblem& problem);

  std::optional<Choice> ask() final;
  void tell(const Choice& choice, const Trial& trial) final;

 protected:
  /// The logarithm of the time; infinite after a failure.
  using Cost = double;
  struct Result {
    Choice choice;
    Cost cost = 0;
  };

  /// Returns a configuration to try, or nothing if it found none that is new; then a random one is
  /// tried. `first` is the number of configurations asked for before.
  virtual std::optional<Choice> propose(std::uint64_t first) = 0;
  /// Receives the result of each configuration.
  virtual void learn(const Result& result) = 0;

  double option(std::string_view name) const;
  std::size_t count_option(std::string_view name) const;
  const Space& space() const { return space_; }
  std::mt19937_64& random() { return random_; }
  /// Returns a uniform integer in [0, bound), bound ≥ 1.
  std::size_t below(std::size_t bound);
  bool untried(const Choice& choice) const;
  /// Returns the cost of a configuration whose result is known.
  std::optional<Cost> cost(const Choice& choice) const;
  /// Returns a random valid configuration; each variant is as likely as another.
  Choice random_choice();
  /// Replaces the value of one random parameter; nothing if the result is not valid.
  std::optional<Choice> random_move(Choice from);
  /// Returns the used share of the budget, 0…1; for an unknown budget, that of 500 trials.
  double progress() const;

 private:
  const Space& space_;
  StrategyOptions options_;
  double budget_;
  Untried untried_;
  std::mt19937_64 random_;
  std::vector<std::uint32_t> variants_;  ///< variants with at least one valid configuration
  std::map<Choice, Cost> known_;
  std::uint64_t asked_ = 0;
};

/// The order of a variant's values, so that heuristics that move by steps do not depend on the
/// order in which a space lists them.
class ValueOrder {
 public:
  explicit ValueOrder(const Space& space);
  /// Returns the number of values of a parameter.
  std::size_t count(std::uint32_t variant, std::size_t parameter) const;
  /// Returns the place of a value in ascending order.
  std::size_t place(std::uint32_t variant, std::size_t parameter, std::uint16_t value) const;
  /// Returns the value at a place.
  std::uint16_t value(std::uint32_t variant, std::size_t parameter, std::size_t place) const;

 private:
  struct Order {
    std::vector<std::uint16_t> value, place;
  };
  std::vector<std::vector<Order>> orders_;  ///< [variant][parameter]
};

}  // namespace greta::tuner
