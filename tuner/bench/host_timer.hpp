#pragma once

#include <functional>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// Times calls with the host's clock. Each sample is the mean over enough calls that the cost and
/// resolution of the clock are negligible.
class HostTimer {
 public:
  /// Performs `calls` consecutive calls.
  using Run = std::function<Result<void>(int calls)>;

  /// `most_calls` limits the calls of a sample, for calls that consume a resource.
  explicit HostTimer(int most_calls = 1 << 20) : most_calls_(most_calls) {}

  /// Takes `count` samples, in µs per call. The first time it also determines the number of calls
  /// per sample.
  Result<std::vector<double>> take(int count, const Run& run);

 private:
  int most_calls_;
  int calls_ = 0;  // calls per sample; 0: not known yet
};

}  // namespace greta::tuner
