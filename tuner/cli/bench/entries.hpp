#pragma once

#include <string>
#include <vector>

#include "tuner/cli/bench/google_run.hpp"
#include "tuner/cli/bench/table.hpp"

namespace greta::tuner::cli {

/// Returns whether --filter matches a name. It is a regular expression on part of the name; a
/// leading "-" negates it; empty matches all. Throws CommandError for an invalid expression.
bool matches(const std::string& filter, const std::string& name);

/// Returns whether two benchmarks compute the same on the same device, possibly with different
/// configurations.
bool same_computation(const Subject& a, const Subject& b);

/// Removes benchmarks whose subject `known` contains, measured by this commit, with times and
/// without failure. Returns their last results there.
std::vector<NamedResult> leave_out(const std::vector<MeasuredResult>& known,
                                   std::vector<GoogleRun::Entry>& entries);

/// Divides entries into groups of about `about` entries, in order. Entries of the same computation
/// stay together.
std::vector<std::vector<GoogleRun::Entry>> in_groups(std::vector<GoogleRun::Entry> entries,
                                                     std::size_t about);

/// Sets the speedups of configurations from a database over the defaults of the same problems,
/// which follow them.
void add_speedups(std::vector<NamedResult>& rows);

}  // namespace greta::tuner::cli
