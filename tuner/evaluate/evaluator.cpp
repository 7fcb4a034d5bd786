#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner {

Result<std::vector<Energy>> Evaluator::measure_energy(const Problem& /*problem*/,
                                                      const std::vector<Config>& /*configs*/,
                                                      int /*blocks*/, double /*seconds*/,
                                                      const TrialLimits& /*limits*/) {
  return Failure{Status::unavailable, "its energy can't be measured", {}};
}

Result<CounterReading> Evaluator::count(const Problem& /*problem*/, const Config& /*config*/,
                                        const std::vector<std::string>& /*counters*/,
                                        const TrialLimits& /*limits*/) {
  return Failure{Status::unavailable, "nothing is counted here", {}};
}

}  // namespace greta::tuner
