#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "tuner/search/permutation.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner {

/// Which configurations of a space have been given out, and in which random order the rest come.
/// Every strategy gives out through it: the seeds first, and nothing twice.
class Untried {
 public:
  explicit Untried(const SearchProblem& problem);

  bool has(std::uint64_t index) const { return !given_.contains(index); }
  /// Gives out this one; nothing when it was given out before.
  std::optional<Choice> take(std::uint64_t index);
  /// The next seed; nothing when all have been given out.
  std::optional<Choice> next_seed();
  /// The next in random order, uniform over the whole space; nothing when all have been given out.
  std::optional<Choice> next_random();

 private:
  const Space& space_;
  std::vector<Choice> seeds_;
  std::size_t seeds_given_ = 0;
  Permutation order_;
  std::uint64_t place_ = 0;
  std::unordered_set<std::uint64_t> given_;
};

}  // namespace greta::tuner
