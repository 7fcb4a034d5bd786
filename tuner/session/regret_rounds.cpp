#include "tuner/session/regret_rounds.hpp"

#include <algorithm>

#include "tuner/measure/statistics.hpp"

namespace greta::tuner {
namespace {

constexpr int wanted_rounds = 12;
constexpr std::size_t fewest_regret_rounds = 3;
constexpr double most_s = 20;
constexpr double regret_confidence = 0.95;

}  // namespace

Result<Regret> measure_regret(Evaluator& evaluator, const StoredWinner& result,
                              const StoredWinner& neighbour, std::uint64_t seed) {
  TrialLimits limits;
  limits.cold = result.winner.cold;
  limits.run_s = std::max(60.0, 40e-6 * result.winner.measurement.median_us);
  std::vector<Config> configs;
  for (const Config& stored : {result.winner.config, neighbour.winner.config}) {
    auto usable = evaluator.catalog().usable(result.problem, evaluator.device(), stored);
    if (!usable) return usable.failure();
    configs.push_back(std::move(usable->config));
  }
  for (const auto& config : configs) {
    const Trial trial = evaluator.verify(result.problem, config, seed, limits);
    if (!trial.ok()) return Failure{*trial.failure, config.shown() + ": " + trial.message, {}};
  }
  const auto rounds =
      evaluator.time_rounds(result.problem, configs, wanted_rounds, most_s, seed, limits);
  if (rounds.us.front().size() < fewest_regret_rounds) {
    return rounds.failure ? *rounds.failure
                          : Failure{Status::timeout, "the device's speed drifted", {}};
  }
  return Regret{neighbour.problem.dims_text(),
                ratio_interval(rounds.us[1], rounds.us[0], regret_confidence).estimate,
                Regret::Source::measured};
}

}  // namespace greta::tuner
