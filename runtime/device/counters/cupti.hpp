#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/counter_reader.hpp"
#include "runtime/device/counters/cupti_abi.hpp"

namespace greta::device {

/// A CUDA device whose counters are wanted.
struct CuptiTarget {
  std::size_t device = 0;  ///< ordinal of the CUDA driver
  cupti::Context context = nullptr;
  /// Makes the context the calling thread's current one.
  std::function<void()> enter = [] {};
  /// Names and paths of CUPTI, tried in this order. Tests provide their own.
  std::vector<std::string> libraries = default_libraries();

  static std::vector<std::string> default_libraries();
};

/// Opens the counters of an NVIDIA GPU through CUPTI's Range Profiler (12.6 or later). Work is
/// counted in one user range, which the caller's work is repeated for. Fails with `unavailable` and
/// the name of the function that refused.
Result<std::unique_ptr<CounterReader>> open_cupti(CuptiTarget target);

}  // namespace greta::device
