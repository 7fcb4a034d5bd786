#include "tuner/profile/count_results.hpp"

#include "tuner/measure/ceilings.hpp"
#include "tuner/profile/figures.hpp"
#include "tuner/profile/limiter.hpp"

namespace greta::tuner {

void count_results(Evaluator& counting, const std::vector<Ceiling>& ceilings, double run_s,
                   const std::vector<MeasuredResult*>& results) {
  for (MeasuredResult* const result : results) {
    const Problem& problem = result->subject.problem;
    TrialLimits limits;
    limits.run_s = run_s;
    limits.cold = result->subject.cache != CacheState::warm;
    Profile profile;
    profile.cold = limits.cold;
    profile.work = result->work;
    profile.copy_gbps = ceiling(ceilings, ceiling_copy);
    profile.arithmetic_gflops = arithmetic_gflops(problem.dtype, result->work, ceilings);
    profile.roofline_us = roofline_us(problem.dtype, result->work, ceilings);
    ProfiledWay way{.name = {}, .config = *result->subject.config};
    way.us = {result->us.low, result->us.high, result->us.median};
    const auto counted =
        figures_of(counting.count(problem, way.config, counter_names(), limits), limits.cold);
    if (counted) {
      way.counters = result->counters = *counted;
    } else {
      result->no_counters = counted.failure().message;
    }
    result->limiter = limiter(profile, way);
  }
}

}  // namespace greta::tuner
