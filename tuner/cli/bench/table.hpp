#pragma once

#include <string>
#include <vector>

#include "tuner/measure/measured_result.hpp"

namespace greta::tuner::cli {

/// A result, and what it is called in a table.
struct NamedResult {
  std::string name;
  MeasuredResult result;
};

/// Figures of benchmarks for people, a line each.
std::string bench_table(const std::vector<NamedResult>& results);

/// The same for benchmarks that were checked and not timed.
std::string verify_table(const std::vector<NamedResult>& results);

}  // namespace greta::tuner::cli
