#pragma once

#include <string>
#include <vector>

#include "tuner/cli/bench/google_run.hpp"

namespace greta::tuner::cli {

/// Whether --filter takes what has this name: a regular expression on a part of it, with a "-" in
/// front what does not match; empty: all. Throws CommandError for what is no expression.
bool matches(const std::string& filter, const std::string& name);

/// Whether two entries compute the same on the same device, if perhaps in other ways.
bool same_computation(const GoogleRun::Entry& a, const GoogleRun::Entry& b);

/// Leaves out benchmarks whose subject `known` has, timed and right. Returns how many were left
/// out.
std::size_t leave_out(const std::vector<MeasuredResult>& known,
                      std::vector<GoogleRun::Entry>& entries);

/// Entries in groups of about so many, in their order; what computes the same stays together.
std::vector<std::vector<GoogleRun::Entry>> in_groups(std::vector<GoogleRun::Entry> entries,
                                                     std::size_t about);

}  // namespace greta::tuner::cli
