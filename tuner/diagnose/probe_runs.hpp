#pragma once

#include "tuner/diagnose/case_time.hpp"
#include "tuner/diagnose/failed_case.hpp"
#include "tuner/evaluate/failure_keeper.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {

/// Runs a candidate on changed inputs and under other conditions, for the case `made` that has its
/// equal runs (OtherRuns, Probe). What the device can't do or there is no time for is left out. The
/// workload has the case's inputs.
void add_other_runs(Device& device, Stream& stream, const FailedCheck& failed,
                    const Operation& operation, const PreparedPlan& candidate, Workload& load,
                    const std::vector<HostTensor>& inputs, double run_s, CaseTime& time,
                    FailedCase& made);

}  // namespace greta::tuner
