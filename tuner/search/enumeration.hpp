#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "tuner/search/permutation.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner {

/// Tracks which configurations of a space have been returned, and the random order of the rest.
/// Every strategy obtains its configurations here: seeds first, and none twice.
class Untried {
 public:
  explicit Untried(const SearchProblem& problem);

  bool has(std::uint64_t index) const { return !given_.contains(index); }
  bool any() const { return given_.size() < space_.count(); }
  /// Returns the configuration with this index; nothing if it was returned before.
  std::optional<Choice> take(std::uint64_t index);
  /// Returns the next seed; nothing if all have been returned.
  std::optional<Choice> next_seed();
  /// Returns the next configuration of a uniformly random order of the whole space; nothing if all
  /// have been returned.
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
