#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/counter_reader.hpp"

namespace greta::tuner {

/// A figure of counters: scale · (sum of `above`) / (sum of `below`), without the division if
/// `below` is empty.
struct Formula {
  std::string figure;
  std::vector<std::string> above;
  double scale = 1;
  std::vector<std::string> below{};

  /// Returns the value, or nothing if a counter is absent or it divides by 0.
  std::optional<double> value(const CounterReading& reading) const;
};

/// The formulas of one source of counters. Of several for one figure, the first whose counters the
/// GPU has is used.
struct FormulaSet {
  std::string_view source;  ///< CounterSource::name begins with it
  std::vector<Formula> formulas;
};

/// Returns the formulas of all sources: of CUPTI, in the names that it shares with Nsight Compute.
const std::vector<FormulaSet>& formula_sets();

}  // namespace greta::tuner
