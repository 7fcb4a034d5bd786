#pragma once

#include <cstddef>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tuner/search/budget.hpp"

namespace greta::tuner {

/// Returns about how long tuning a problem takes, in seconds: the budget, the FP64 reference and
/// the certification. It depends on no device, so that every machine gets the same number.
double expected_cost_s(const Operation& operation, const Problem& problem, const Budget& budget);

/// Distributes problems of these costs over `shards` parts of about equal cost: the most expensive
/// problem first, each to the part with the least so far. Returns the part of each problem, from 0.
std::vector<std::size_t> shards_of(const std::vector<double>& costs, std::size_t shards);

}  // namespace greta::tuner
