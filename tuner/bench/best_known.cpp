#include "tuner/bench/best_known.hpp"

#include <limits>
#include <random>

#include "kernels/prior/prior.hpp"
#include "tuner/search/ranking.hpp"

namespace greta::tuner {
namespace {

constexpr int most_remembered = 10'000;

std::optional<Config> best_default(const StaticPrior& prior, const Variant& variant) {
  const Instance& instance = prior.instance();
  std::optional<Config> best;
  double least = std::numeric_limits<double>::infinity();
  for (Config& config : variant.defaults(instance.shape(), instance.device())) {
    if (instance.rejects(config)) continue;
    const auto cost = prior.cost(config);
    if (best && !(cost && *cost < least)) continue;
    if (cost) least = *cost;
    best = std::move(config);
  }
  return best;
}

/// For variants without defaults here.
std::optional<Config> best_of_space(const Operation& operation, const Problem& problem,
                                    const DeviceInfo& device, const Variant& variant) {
  const Space space({variant.space(operation.shape(problem), device)});
  if (space.count() == 0) return std::nullopt;
  std::mt19937_64 random(1);
  if (const auto prior = static_prior(operation, problem, device, space)) {
    const auto ranked = rank_by_prior(space, prior, 1, random);
    if (!ranked.empty()) return space.config(ranked.front().second);
  }
  return space.at(0);
}

}  // namespace

std::optional<Config> best_known(const Operation& operation, const std::string& variant,
                                 const Problem& problem, const DeviceInfo& device,
                                 const TunedDb& db, bool cold) {
  const StaticPrior prior(operation, problem, device);
  for (const Config& config :
       db.fastest_configs(device.fingerprint(), problem.key(), cold, most_remembered)) {
    if (config.variant == variant && !prior.instance().rejects(config)) return config;
  }
  if (auto config = best_default(prior, operation.variant(variant))) return config;
  return best_of_space(operation, problem, device, operation.variant(variant));
}

}  // namespace greta::tuner
