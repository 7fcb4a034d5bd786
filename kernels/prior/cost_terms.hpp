#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "kernels/model/launch_work.hpp"
#include "kernels/prior/unit_rates.hpp"

namespace greta::kernels {

/// What the predicted time of a configuration consists of. Each term is the time in cycles that
/// its resource alone would take on the busiest compute unit, summed over the launches.
enum class Term {
  warpgroups,  ///< matrix instructions of warpgroups
  matrix,      ///< other matrix instructions
  vector,      ///< vector instructions, less if a unit has too few threads
  shared,      ///< shared memory, with bank conflicts
  cache,       ///< loads and stores, as the last-level cache serves them
  memory,      ///< bytes that must come from memory
  loads,       ///< memory instructions
  waiting,     ///< latency of loads that nothing overlaps: too few bytes in flight
  prefetched,  ///< the same of loads during whose latency the workgroup computes
  barriers,    ///< waits for a workgroup's threads
  starts,      ///< workgroups that begin and end
  spills,      ///< registers that a thread lacks, written and read in each step
  tails,       ///< workgroups that store their results and compute nothing else
  launches     ///< from one launch to the next
};
constexpr std::size_t term_count = static_cast<std::size_t>(Term::launches) + 1;
constexpr std::array<std::string_view, term_count> term_names{
    "warpgroups", "matrix",     "vector",   "shared", "cache",  "memory", "loads",
    "waiting",    "prefetched", "barriers", "starts", "spills", "tails",  "launches"};

using CostTerms = std::array<double, term_count>;

/// Returns the terms of a configuration's launches. Workgroups are assigned in waves: a compute
/// unit holds as many as its threads, registers and shared memory allow, and the last wave may
/// occupy only some units.
CostTerms cost_terms(const KernelWork& work, const UnitRates& rates);

}  // namespace greta::kernels
