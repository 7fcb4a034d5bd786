#pragma once

#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// Counts what each of these results of kernels does on the hardware, with an evaluator that times
/// nothing. Sets their counters, or why there are none, and what limits them. Throws Error if
/// interrupted.
void count_results(Evaluator& counting, const std::vector<Ceiling>& ceilings, double run_s,
                   const std::vector<MeasuredResult*>& results);

}  // namespace greta::tuner
