#pragma once

#include "db/determinism.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {

/// How often a candidate is run to find races.
struct RepeatLimits {
  int runs = 20;
  double seconds = 10;  ///< on a CPU, runs end early after this time, but not before three are done
  double run_s = 30;    ///< deadline of a run
};

/// Runs a candidate several times on the same inputs and compares the bits of its outputs. Every
/// other run takes place while another stream fills memory, as races may need a busy device.
/// If bits differ, fails with `correctness`, unless the candidate is `unordered`
/// (Variant::unordered). Fails like the device's calls otherwise.
Result<Determinism> check_repeats(Device& device, Stream& stream, Workload& load,
                                  const PreparedPlan& candidate, const RepeatLimits& limits,
                                  bool unordered);

}  // namespace greta::tuner
