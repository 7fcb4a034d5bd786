#pragma once

#include <functional>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// Times calls on the host's clock. Each sample is the mean over so many calls that the clock's own
/// cost and resolution don't matter.
class HostTimer {
 public:
  /// Does something `calls` times, one after the other.
  using Run = std::function<Result<void>(int calls)>;

  /// `most_calls`: of one sample, where calls use something up.
  explicit HostTimer(int most_calls = 1 << 20) : most_calls_(most_calls) {}

  /// `count` samples, µs for one call. The first time it also learns how many calls a sample needs.
  Result<std::vector<double>> take(int count, const Run& run);

 private:
  int most_calls_;
  int calls_ = 0;  // of a sample; 0: not known yet
};

}  // namespace greta::tuner
