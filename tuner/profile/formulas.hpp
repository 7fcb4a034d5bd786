#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/counters/counter_reader.hpp"

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

/// NVIDIA's metrics, in the names that CUPTI and Nsight Compute share.
const FormulaSet& cupti_formulas();
/// AMD's counters and derived counters, in the names of rocprofiler-sdk.
const FormulaSet& rocprofiler_formulas();
/// Counters of VK_KHR_performance_query, in RADV's names.
const FormulaSet& vulkan_formulas();

}  // namespace greta::tuner
