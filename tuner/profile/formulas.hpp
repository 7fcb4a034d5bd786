#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/counter_reader.hpp"

namespace greta::tuner {

/// A counter, and what it is multiplied by.
struct Term {
  Term(const char* name) : counter(name) {}
  Term(std::string name, double factor = 1) : counter(std::move(name)), weight(factor) {}

  std::string counter;
  double weight = 1;
};

/// A figure of counters: scale · (sum of `above`) / (sum of `below`) / (product of `per`). An empty
/// list is not divided by.
struct Formula {
  std::string figure;
  std::vector<Term> above;
  double scale = 1;
  std::vector<Term> below{};
  std::vector<std::string> per{};

  /// Returns the value, or nothing if a counter is absent or it divides by 0.
  std::optional<double> value(const CounterReading& reading) const;
};

/// The formulas of one source of counters on some of its GPUs. Of several for one figure, the first
/// whose counters the GPU has is used.
struct FormulaSet {
  std::string_view source;              ///< CounterSource::name begins with it
  std::vector<std::string_view> chips;  ///< CounterSource::chip begins with one; empty: all
  std::vector<Formula> formulas;

  bool fits(const CounterSource& of) const;
};

/// Returns the formulas of CUPTI, in the names that it shares with Nsight Compute.
FormulaSet cupti_formulas();
/// Returns the formulas of rocprofiler-sdk (rocprofiler::open()). Those of the same figure are
/// those of AMD's derived counters and of ROCm Compute Profiler.
std::vector<FormulaSet> rocprofiler_formulas();
/// Returns the formulas of drivers with VK_KHR_performance_query whose counters are known.
std::vector<FormulaSet> vulkan_formulas();

/// Returns the formulas of all sources.
const std::vector<FormulaSet>& formula_sets();

}  // namespace greta::tuner
