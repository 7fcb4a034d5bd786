#pragma once

#include "tuner/measure/sampler.hpp"

namespace greta::tuner {

/// Brings a device to its highest speed. A GPU that idles while the host checks a result lowers its
/// clocks, on some to a fifth, and needs up to a tenth of a second of work to raise them again.
class Pace {
 public:
  /// Runs work until a reference kernel takes its usual time at high clocks. A device that does not
  /// reach that speed (because it is hot or on battery power) is used as it is, and its current
  /// speed becomes the expected one. `take` times the kernel after some milliseconds of work.
  Result<void> reach(const TakeSamples& take);
  /// Returns the kernel's time at high clocks; 0 before the first reach().
  double usual_us() const { return usual_us_; }

 private:
  double usual_us_ = 0;  // 0: unknown
};

}  // namespace greta::tuner
