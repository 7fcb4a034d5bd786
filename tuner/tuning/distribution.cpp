#include "tuner/tuning/distribution.hpp"

#include <algorithm>

namespace greta::tuner {
namespace {

constexpr double least_s = 3;  ///< minimum budget for which tuning a problem is useful

/// Returns the total time of the first problems.
double total_us(const std::vector<WeightedProblem>& problems, std::size_t count) {
  double us = 0;
  for (std::size_t i = 0; i < count; ++i) us += problems[i].us;
  return us;
}

}  // namespace

Distribution distribute(std::vector<WeightedProblem> problems, const Budget& budget,
                        double fixed_s) {
  std::stable_sort(problems.begin(), problems.end(),
                   [](const auto& a, const auto& b) { return a.us > b.us; });
  const bool timed = budget.kind() == Budget::Kind::seconds;
  std::size_t served = problems.size();
  // The last one has the smallest budget.
  while (timed && served > 1 &&
         budget.amount() * problems[served - 1].us <
             (least_s + fixed_s) * total_us(problems, served)) {
    --served;
  }
  const double total = total_us(problems, served);
  Distribution result;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (i >= served) {
      result.left_out.push_back(problems[i].problem);
      continue;
    }
    result.tasks.push_back({.problem = problems[i].problem});
    if (timed && total > 0) result.tasks.back().share = problems[i].us / total;
  }
  const double all = total_us(problems, problems.size());
  if (all > 0) result.left_out_share = 1 - total / all;
  return result;
}

}  // namespace greta::tuner
