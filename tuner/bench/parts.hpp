#pragma once

#include <vector>

#include "kernels/catalog.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/measure/measured_result.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

/// One of the operations that compute what a fused one does, and how often it is launched.
struct PartResult {
  const MeasuredResult* result = nullptr;
  int count = 1;
};

/// A fused operation beside its parts (Operation::parts) on one device.
struct PartsResult {
  const MeasuredResult* fused = nullptr;  ///< the fastest configuration
  std::vector<PartResult> parts{};
  double parts_us = 0;  ///< medians of all parts, added up; 0 if one was not timed
  /// The parts' time divided by the fused operation's, from blocks that were taken at about the
  /// same time; low is 0 and high infinite if there are too few for an interval.
  Interval ratio{};
};

/// Returns the problems of the distinct parts of a problem with the numbers of their launches.
std::vector<std::pair<Problem, int>> distinct_parts(const Operation& operation,
                                                    const Problem& problem);

/// Returns the problems that are to be compared with their parts and whose parts are among the
/// results, on each device in turn.
std::vector<PartsResult> compare_parts(const Catalog& catalog,
                                       const std::vector<PresetProblem>& problems,
                                       const std::vector<const MeasuredResult*>& results);

}  // namespace greta::tuner
