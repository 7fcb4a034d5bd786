#pragma once

#include <string>
#include <vector>

#include "tuner/bench/gate.hpp"
#include "tuner/bench/parts.hpp"
#include "tuner/measure/measured_result.hpp"

namespace greta::tuner::cli {

/// A result and its name in a table.
struct NamedResult {
  std::string name;
  MeasuredResult result;
};

/// Returns the figures of benchmarks as text, one line each.
std::string bench_table(const std::vector<NamedResult>& results);

/// Returns the figures of several configurations or devices for one problem, the fastest first,
/// with the time of each divided by that of the fastest.
std::string ways_table(const std::vector<NamedResult>& results);

/// Returns fused operations beside their parts as text; empty if there are none.
std::string parts_table(const std::vector<PartsResult>& rows);

/// Returns the bandwidths and latencies of working sets as text, with bars; empty if there are none
/// among the results.
std::string ladder_table(const std::vector<NamedResult>& results);

/// Returns the judgements of gates as text, one line each.
std::string gate_table(const std::vector<GateResult>& results);

/// Returns the results of benchmarks that were checked and not timed.
std::string verify_table(const std::vector<NamedResult>& results);

}  // namespace greta::tuner::cli
