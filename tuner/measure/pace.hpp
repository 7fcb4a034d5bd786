#pragma once

#include "tuner/measure/sampler.hpp"

namespace greta::tuner {

/// Whether a device runs as fast as it can. A GPU that idles while the host checks a result lowers
/// its clocks, some to a fifth, and takes up to a tenth of a second of work to raise them again.
class Pace {
 public:
  /// Works until a steady kernel takes no longer than it took at best. A device that doesn't get
  /// there (it is hot, or on battery) is taken as it is, and that becomes what is expected of it.
  /// `take` times the kernel, after some milliseconds of work.
  Result<void> reach(const TakeSamples& take);

 private:
  double best_us_ = 0;  // 0: unknown
};

}  // namespace greta::tuner
