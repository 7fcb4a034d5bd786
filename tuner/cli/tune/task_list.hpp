#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/tuning/distribution.hpp"

namespace greta::tuner::cli {

/// Adds what tune_list() adds if there are no tasks. Returns true.
bool no_results(nlohmann::json& report);

/// Tunes tasks in order. Prints a line or two for each unless options.for_programs(), and adds
/// reports to `report` as "results" and "comparisons". Returns whether each has a winner.
bool tune_list(const std::vector<TuningTask>& tasks, const TuningOptions& options,
               nlohmann::json& report);

/// Reports the problems that a distribution left out on standard error.
void report_left_out(const Distribution& distribution, const TuningOptions& options);

}  // namespace greta::tuner::cli
