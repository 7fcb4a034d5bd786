#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "kernels/sampling/candidates.hpp"
#include "kernels/sampling/coverage.hpp"

namespace greta::kernels {

/// What a choice would cover for the first time, in order of precedence.
struct Gain {
  std::size_t weight = 0;    ///< of features, pairs of options, numbers of parts, and remainders
  std::size_t pairs = 0;     ///< of parameter values, since some branches depend on two
  std::size_t features = 0;  ///< weighted: rare ones count more

  auto operator<=>(const Gain&) const = default;
};

/// What a problem adds to what choices of a variant have.
struct ProblemGain {
  std::size_t features = 0;    ///< few problems have what others lack, so that these count thrice
  std::size_t remainders = 0;  ///< extents of another remainder_class()
  std::vector<std::uint64_t> options{};  ///< attributes that differ from their defaults
};

/// What earlier choices of random problems and configurations have.
class Novelty {
 public:
  bool has(const Feature& feature) const { return met_.contains(feature); }
  /// Counts features that no choice has, those that name no parameter `of_rare` times.
  std::size_t unmet(const std::vector<Feature>& features, std::size_t of_rare = 1) const;
  ProblemGain of_problem(const Operation& operation, const Problem& problem,
                         const Variant& variant) const;
  /// Returns what a choice adds, with what its problem does. Besides features, these are pairs of
  /// options: attributes that differ from their defaults, paths, and parameters that are 1 or 2, as
  /// the code of one often depends on another; and numbers of parts (1, 2, up to 4, up to 8, more),
  /// together with each parameter that is 0, 1 or 2: buffers are filled again, and phases change,
  /// only after several parts.
  /// If `deep`, many parts count before all else in a division, the one with this number modulo
  /// that of divisions.
  Gain of_choice(const ProblemGain& of_problem, const Variant& variant, const ProblemShape& shape,
                 const Config& config, std::optional<std::size_t> deep) const;
  void add(const Operation& operation, const Candidate& choice);

 private:
  std::unordered_set<Feature> met_;
  std::unordered_set<std::uint64_t> met_pairs_;  ///< as each_pair() numbers them
  std::unordered_set<std::uint64_t> met_options_;
  std::unordered_set<std::uint64_t> met_depths_;
  std::unordered_set<std::uint64_t> met_remainders_;
};

}  // namespace greta::kernels
