#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "tuner/search/strategy.hpp"

namespace greta::tuner {

/// Returns up to `count` different configurations with the lowest predicted costs that were found,
/// the best first, each with its cost. Small spaces are searched in full; in others, random
/// configurations of each variant are drawn, from the best of which descents among neighbours
/// begin. Configurations without a prediction (infinite cost) are left out.
std::vector<std::pair<double, Choice>> rank_by_prior(const Space& space,
                                                     const SearchProblem::Prior& prior,
                                                     std::size_t count, std::mt19937_64& random);

/// Returns whether a variant of the operation describes its work.
bool has_prior(const Operation& operation);

/// Returns the static prior of a problem as a strategy needs it; empty if no variant of the
/// operation describes its work. `space` and `operation` must outlive it.
SearchProblem::Prior static_prior(const Operation& operation, const Problem& problem,
                                  const DeviceInfo& device, const Space& space);

}  // namespace greta::tuner
