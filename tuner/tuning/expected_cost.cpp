#include "tuner/tuning/expected_cost.hpp"

#include <algorithm>
#include <numeric>

namespace greta::tuner {
namespace {

// Rates of a data-centre GPU and of its host. Only their ratios matter.
constexpr double device_flops = 2e14, device_bytes_per_s = 2e12;
constexpr double reference_flops = 1e10;
constexpr double longest_reference_s = 60;  // larger results are checked by samples
constexpr double trial_s = 0.1;             // without launches
constexpr double launches_of_a_trial = 50;
constexpr double launches_of_finals = 2000;
constexpr double finals_s = 3;
constexpr double trials_of_a_share = 1000;  // the size of a space depends on the device

}  // namespace

double expected_cost_s(const Operation& operation, const Problem& problem, const Budget& budget) {
  const Work work = operation.work(problem);
  const double launch_s =
      1e-5 + std::max(work.flops / device_flops, work.bytes / device_bytes_per_s);
  const double reference_s = std::min(longest_reference_s, work.flops / reference_flops);
  const double once_s = finals_s + reference_s + launches_of_finals * launch_s;
  if (budget.kind() == Budget::Kind::seconds) return budget.amount() + once_s;
  const double trials = budget.kind() == Budget::Kind::trials ? budget.amount() : trials_of_a_share;
  return trials * (trial_s + launches_of_a_trial * launch_s) + once_s;
}

std::vector<std::size_t> shards_of(const std::vector<double>& costs, std::size_t shards) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<double> total(shards, 0);
  std::vector<std::size_t> part(costs.size());
  for (const std::size_t i : order) {
    const auto least = std::min_element(total.begin(), total.end());
    *least += costs[i];
    part[i] = static_cast<std::size_t>(least - total.begin());
  }
  return part;
}

}  // namespace greta::tuner
